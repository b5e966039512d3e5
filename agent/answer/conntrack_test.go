package answer

import (
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// tracked is a pipeline with three connections, and a client of it.
func tracked(t *testing.T) (*pipeline.Pipeline, *api.Client) {
	t.Helper()
	p, err := pipeline.NewPipeline(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Local.Close() })
	for i, b := range [][]byte{
		packettest.TCP4(packettest.Options{}), packettest.UDP4(packettest.Options{}), packettest.UDP6(packettest.Options{}),
	} {
		f := packet.NewFrame(make([]byte, 2048), nil)
		f.SetBytes(b)
		l := packet.ParseLayers(f.Bytes())
		var m conntrack.Meta
		r := conntrack.Request{Zone: uint16(i), Commit: true, Mark: uint32(i), MarkMask: 3}
		if p.Local.Table().Track(f, &l, &m, &r, 0); m.State != conntrack.New|conntrack.Tracked {
			t.Fatalf("ct_state %#x for %s", m.State, hex.EncodeToString(b))
		}
	}
	return p, New(p).Client("test")
}

func TestConntrackAnswers(t *testing.T) {
	_, c := tracked(t)
	for _, s := range []struct {
		question string
		lines    int
		want     string
	}{
		{"/conntrack", 3, "timeout="},
		{"/conntrack?stats=0", 3, "zone=2,mark=2"},
		{"/conntrack?zone=0", 1, "tcp,orig=("},
		{"/conntrack?state=syn_sent", 1, "protoinfo=(state=SYN_SENT)"},
		{"/conntrack?mark=0x2/0x2", 1, "zone=2"},
		{"/conntrack?mark=0", 1, "tcp"},
		{"/conntrack?address=::/0", 1, "udp"},
		{"/conntrack?address=0.0.0.0/0&zone=2", 0, ""},
	} {
		t.Run(s.question, func(t *testing.T) {
			got := get(t, c, s.question)
			if strings.Count(got, "\n") != s.lines || !strings.Contains(got, s.want) {
				t.Errorf("%d lines and %q wanted in\n%s", s.lines, s.want, got)
			}
		})
	}
}

// TestConntrackRecords: the JSON says in fields what the text says.
func TestConntrackRecords(t *testing.T) {
	_, c := tracked(t)
	var all []api.Connection
	if err := c.JSON(t.Context(), "/conntrack", url.Values{"zone": {"1"}}, &all); err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	r := all[0]
	for _, want := range []string{
		"orig=(src=" + r.Orig.Src.String() + ",dst=" + r.Orig.Dst.String(), "reply=(src=" + r.Orig.Dst.String(), "mark=1",
	} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("no %q in %s", want, r.Text)
		}
	}
	if r.Proto != packet.ProtoUDP || r.Mark != 1 || r.Reply.SrcPort != r.Orig.DstPort || r.TimeoutNS <= 0 {
		t.Errorf("record %+v", r)
	}
}

func TestFlushConntrack(t *testing.T) {
	p, c := tracked(t)
	ask := func(q url.Values) string {
		b, err := c.Delete(t.Context(), "/conntrack", q)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := ask(url.Values{"zone": {"1"}, "state": {"ESTABLISHED"}}); got != "flushed 0 connections\n" {
		t.Error(got)
	}
	var n api.Flushed
	if err := json.Unmarshal([]byte(ask(url.Values{"address": {"::/0"}, "format": {"json"}})), &n); err != nil || n.Flushed != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	if got := ask(nil); got != "flushed 2 connections\n" || p.Connections.Stats().Entries != 0 {
		t.Errorf("%s, left %d", got, p.Connections.Stats().Entries)
	}
}

// TestBadFilters: what makes no sense is refused, in a list and before anything
// is flushed.
func TestBadFilters(t *testing.T) {
	p, c := tracked(t)
	for _, s := range []struct{ name, value, want string }{
		{"zone", "", "between 0 and 65535"},
		{"zone", "-1", "between 0 and 65535"},
		{"address", "10.0.0", "neither an IP address nor a range"},
		{"address", "10.0.0.0/33", "neither an IP address nor a range"},
		{"address", "fe80::1%eth0", "neither an IP address nor a range"},
		{"port", "0", "between 1 and 65535"},
		{"port", "http", "between 1 and 65535"},
		{"state", "ESTABLISHEDX\x00", "is none of CLOSED"},
		{"state", "", "is none of CLOSED"},
		{"mark", "0x1_/", "VALUE or VALUE/MASK"},
		{"mark", "0x100000000", "VALUE or VALUE/MASK"},
		{"mark", "0x3/0x1", "bits outside its mask"},
		{"mark", strings.Repeat("9", 1<<16), "VALUE or VALUE/MASK"},
	} {
		q := url.Values{s.name: {s.value}}
		_, err := c.Delete(t.Context(), "/conntrack", q)
		if err == nil || !strings.Contains(err.Error(), s.want) || !strings.HasPrefix(err.Error(), s.name+"=") {
			t.Errorf("%s=%.40q: %.200v", s.name, s.value, err)
		}
		if _, err := c.Get(t.Context(), "/conntrack", q); err == nil {
			t.Errorf("%s=%.40q is listed", s.name, s.value)
		}
	}
	if _, err := c.Delete(t.Context(), "/conntrack", url.Values{"zone": {"1", "2"}}); err == nil || !strings.Contains(err.Error(), "more than once") {
		t.Errorf("two zones: %v", err)
	}
	if n := p.Connections.Stats().Entries; n != 3 {
		t.Errorf("%d connections are left of 3", n)
	}
}

// TestConntrackCounters: text, JSON and metrics say the same.
func TestConntrackCounters(t *testing.T) {
	p, c := tracked(t)
	p.Local.Table().SetLimit(2, 7)
	wait := packettest.Split(packettest.UDP4(packettest.Options{Payload: make([]byte, 2000)}), 1, 1000)[0]
	if err := p.Switch.Apply(&flow.Bundle{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Switch.PacketOut(1, []flow.Action{&flow.CT{Table: flow.NoTable}}, wait); err != nil {
		t.Fatal(err)
	}
	var all []api.Counter
	if err := c.JSON(t.Context(), "/conntrack/stats", nil, &all); err != nil {
		t.Fatal(err)
	}
	values := map[string]uint64{}
	for _, r := range all {
		values[strings.TrimSpace(r.Name+" "+r.Label)] = r.Value
	}
	for name, want := range map[string]uint64{
		"ct_entries": 3, "ct_created_total": 3, "ct_zone_entries 2": 1, "ct_zone_limit 2": 7, "ct_port_entries #0": 3, "ct_port_refused_total #0": 0, "ct_insert_fail_total ct_full": 0,
		"frag_datagrams": 1, "frag_waiting": 1, "frag_bytes": 2048, "frag_completed_total": 0,
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s is %d (%t), want %d", name, got, ok, want)
		}
	}
	text, metrics := get(t, c, "/conntrack/stats"), get(t, c, "/metrics")
	for _, r := range all {
		if !strings.Contains(text, r.Name) || !strings.Contains(metrics, "antrail_"+r.Name) {
			t.Errorf("%s is not in the text and the metrics", r.Name)
		}
	}
	if want := `antrail_ct_zone_entries{zone="2"} 1`; !strings.Contains(metrics, want) {
		t.Errorf("no %q in\n%s", want, metrics)
	}
}
