package answer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/pcap"
)

// twoNodes are the flow files of the lab's first Node.
func twoNodes(t *testing.T) pipeline.Files {
	t.Helper()
	return pipeline.Files{Flows: "../../examples/two-nodes/node-a.flows"}.Beside()
}

func offline(t *testing.T) *api.Client {
	t.Helper()
	c, err := Offline(twoNodes(t), config.DefaultTunnel)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get(t *testing.T, c *api.Client, question string) string {
	t.Helper()
	path, params, _ := strings.Cut(question, "?")
	q := make(map[string][]string)
	for _, p := range strings.FieldsFunc(params, func(r rune) bool { return r == '&' }) {
		k, v, _ := strings.Cut(p, "=")
		q[k] = append(q[k], v)
	}
	b, err := c.Get(t.Context(), path, q)
	if err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	return string(b)
}

func TestAnswers(t *testing.T) {
	c := offline(t)
	for _, s := range []struct{ question, want string }{
		{"/flows?names=1&stats=0&table=SpoofGuard", ` table=SpoofGuard, priority=200,ip,in_port="client-a",`},
		{"/flows?names=1&table=SpoofGuard", "n_packets=0, n_bytes=0, idle_age=0, priority=200,ip,"},
		{"/flows?stats=0&table=SpoofGuard", "priority=200,ip,in_port=36,"},
		{"/flows?format=json&table=SpoofGuard", `"match": "ip,in_port=\"client-a\",`},
		{"/groups?names=1", "group_id=10,type=select,bucket=bucket_id:0"},
		{"/groups?format=json", `"id": 10`},
		{"/meters", "meter=256 pktps burst"},
		{"/ports?names=1", `port "client-a": rx pkts=0`},
		{"/ports", "port 36: rx pkts=0"},
		{"/ports?format=json", `"name": "antrea-gw0"`},
		{"/ports", "worker 0, of whose time it takes 0.0 %"},
		{"/workers", "WORKER  PORTS  LOAD"},
		{"/workers?format=json", `"ofPorts": [`},
		{"/metrics", `antrail_worker_seconds_total{state="asleep",worker="0"} 0`},
		{"/tables", "ARPSpoofGuard"},
		{"/tables?format=json", `"name": "Output"`},
		{"/conntrack?format=json", "[]"},
		{"/fdb", " port  VLAN  MAC                Age\n"},
		{"/cache", "NAME                VALUE  MEANING\nentries             0      Walks in the exact-match caches.\n"},
		{"/cache?format=json", `"name": "hit"`},
		{"/metrics", `antrail_cache_events_total{event="hit"} 0`},
		{"/drops", "TABLE  REASON  PACKETS  MEANING\n"},
		{"/drops?format=json", "[]"},
		{"/metrics", `antrail_table_entries{table="SpoofGuard"}`},
		{"/metrics", `antrail_port_packets_total{direction="rx",port="client-a"} 0`},
		{"/metrics", "antrail_ct_entries 0"},
		{"/metrics", `antrail_refused_packets_total{by="policy",outcome="answered"} 0`},
	} {
		t.Run(s.question, func(t *testing.T) {
			if got := get(t, c, s.question); !strings.Contains(got, s.want) {
				t.Errorf("no %q in\n%.2000s", s.want, got)
			}
		})
	}
}

// TestDumpIsTheFile: what is loaded and dumped again is what was loaded.
func TestDumpIsTheFile(t *testing.T) {
	var want []string
	text, err := os.ReadFile(twoNodes(t).Flows)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "table=") {
			want = append(want, " "+strings.TrimSpace(line))
		}
	}
	got := get(t, offline(t), "/flows?names=1&stats=0")
	lines := make(map[string]bool)
	for line := range strings.Lines(got) {
		lines[strings.TrimRight(line, "\n")] = true
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines dumped, %d loaded", len(lines), len(want))
	}
	for _, line := range want {
		if !lines[line] {
			t.Errorf("not dumped: %s", line)
		}
	}
}

func TestSortedDump(t *testing.T) {
	got := get(t, offline(t), "/flows?names=1&stats=0&sort=1&table=ARPSpoofGuard")
	var last string
	for line := range strings.Lines(got) {
		if strings.Contains(line, "priority=200") && line < last {
			t.Errorf("%q stands behind %q", line, last)
		}
		last = line
	}
}

// TestOnePort: a port is asked for by its name or number.
func TestOnePort(t *testing.T) {
	c := offline(t)
	for _, which := range []string{"client-a", "36"} {
		if got := get(t, c, "/ports?which="+which); !strings.Contains(got, ": 1 ports\n  port 36: rx pkts=0") || strings.Count(got, "rx pkts=") != 1 {
			t.Errorf("%s:\n%s", which, got)
		}
	}
}

func TestBadQuestions(t *testing.T) {
	c := offline(t)
	for _, s := range []struct{ path, key, value, want string }{
		{"/flows", "table", "Nonesuch", `there is no table "Nonesuch"`},
		{"/flows", "table", "256", `there is no table "256"`},
		{"/flows", "table", "99", `there is no table "99"`},
		{"/flows", "table", "SpoofGard", `there is no table "SpoofGard" (did you mean SpoofGuard?)`},
		{"/flows", "names", "perhaps", `names="perhaps" is neither 0 nor 1`},
		{"/conntrack", "zone", "65536", "between 0 and 65535"},
		{"/ports", "format", "xml", "none of text, json and table"},
		{"/ports", "which", "client-aa", `there is no port "client-aa" (did you mean client-a?); there are antrea-tun0, antrea-gw0, `},
		{"/nothing", "", "", "404"},
	} {
		if _, err := c.Get(t.Context(), s.path, map[string][]string{s.key: {s.value}}); err == nil || !strings.Contains(err.Error(), s.want) {
			t.Errorf("%s?%s=%s: %v, want %q", s.path, s.key, s.value, err, s.want)
		}
	}
}

func TestTrace(t *testing.T) {
	c := offline(t)
	const client = `in_port="client-a",dl_src=5e:b5:e3:a6:90:b7,`
	const routed = client + "nw_src=10.10.0.26,dl_dst=ba:5e:d1:55:aa:c0,"
	const toDB = client + "nw_src=10.10.0.26,nw_dst=10.10.0.25,dl_dst=36:48:21:a2:9d:b4,"
	for _, s := range []struct {
		name string
		req  api.TraceRequest
		want string
	}{
		{"across Nodes", api.TraceRequest{Flow: routed + "tcp,nw_dst=10.10.1.7,tp_dst=80"}, "in a tunnel to 192.168.77.103"},
		{"ping", api.TraceRequest{Flow: routed + "icmp,nw_dst=10.10.1.7"}, "in a tunnel to 192.168.77.103"},
		{"a TTL that runs out", api.TraceRequest{Flow: routed + "icmp,nw_dst=10.10.1.7,nw_ttl=1"}, "dropped in table L3DecTTL (ttl)"},
		{"a first fragment", api.TraceRequest{Flow: routed + "udp,nw_frag=first,nw_dst=10.10.1.7,tp_dst=80"}, "Verdict: waits in table ConntrackZone for the rest of its datagram"},
		{"a later fragment", api.TraceRequest{Flow: routed + "udp,nw_frag=later,nw_dst=10.10.1.7"}, "Verdict: waits in table ConntrackZone for the rest of its datagram"},
		{"outside", api.TraceRequest{Flow: routed + "tcp,nw_dst=192.168.77.1,tp_dst=80"}, `output to port 2 ("antrea-gw0")`},
		{"no endpoint", api.TraceRequest{Flow: routed + "tcp,nw_dst=10.101.255.29,tp_dst=80"}, "Verdict: answered by the switch"},
		{"denied", api.TraceRequest{Flow: toDB + "tcp,tp_dst=3306"}, "dropped in table IngressDefaultRule"},
		{"forged", api.TraceRequest{Flow: client + "tcp,nw_src=10.10.0.66,nw_dst=10.10.0.24,tp_dst=80"}, "dropped in table SpoofGuard"},
		{"assumed state", api.TraceRequest{Flow: toDB + "tcp,tp_dst=3306,tcp_flags=ack", CTNext: []string{"trk,est"}}, `output to port 38 ("db-a")`},
	} {
		t.Run(s.name, func(t *testing.T) {
			b, err := c.Post(t.Context(), "/trace", nil, &s.req)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(b), s.want) {
				t.Errorf("no %q in\n%s", s.want, b)
			}
		})
	}
}

func TestTraceRefuses(t *testing.T) {
	c := offline(t)
	for _, s := range []struct {
		req  api.TraceRequest
		want string
	}{
		{api.TraceRequest{Flow: "tcp"}, "has no in_port"},
		{api.TraceRequest{Flow: "in_port=36,nw_sorc=1.2.3.4"}, "nw_sorc"},
		{api.TraceRequest{Flow: "in_port=36", Packet: "xyz"}, "packet: "},
		{api.TraceRequest{Flow: "in_port=36", Packet: "0011"}, "shorter than an Ethernet header"},
		{api.TraceRequest{Flow: "in_port=36,ip", CTNext: []string{"trk,old"}}, `ct-next "trk,old"`},
	} {
		if _, err := c.Post(t.Context(), "/trace", nil, &s.req); err == nil || !strings.Contains(err.Error(), s.want) {
			t.Errorf("%+v: %v, want %q", s.req, err, s.want)
		}
	}
}

// FuzzTrace: whatever is asked, an answer comes and the pipeline stands.
func FuzzTrace(f *testing.F) {
	f.Add("in_port=36,tcp,nw_src=10.10.0.26,nw_dst=10.105.31.235,tp_dst=80", "", "trk,new")
	f.Add("in_port=36", "5eb5e3a690b7ba5ed155aac008004500", "")
	f.Add("in_port=1,icmp6,tun_src=192.168.77.103,reg0=1", "", "trk|rel")
	c, err := Offline(pipeline.Files{Flows: "../../examples/two-nodes/node-a.flows"}.Beside(), config.DefaultTunnel)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, flow, frame, next string) {
		req := api.TraceRequest{Flow: flow, Packet: frame}
		if next != "" {
			req.CTNext = []string{next}
		}
		b, err := c.Post(t.Context(), "/trace", nil, &req)
		if err == nil && !strings.Contains(string(b), "Verdict: ") {
			t.Errorf("no verdict in\n%s", b)
		}
	})
}

func TestOfflineNamesTheWrongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wrong.flows")
	if err := os.WriteFile(path, []byte("table=0,ip actions=drop\ntable=0,nw_srcc=1.2.3.4 actions=drop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Offline(pipeline.Files{Flows: path}); err == nil || !strings.Contains(err.Error(), "wrong.flows:2:") {
		t.Errorf("error %v", err)
	}
}

// TestReplay plays a connection, a forged packet and a stranger's packet.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.pcap"), filepath.Join(dir, "out.pcap")
	client, web := [6]byte{0x5e, 0xb5, 0xe3, 0xa6, 0x90, 0xb7}, [6]byte{0xfa, 0xb7, 0x53, 0x74, 0x21, 0xa6}
	clientIP, webIP := packettest.Addr("10.10.0.26"), packettest.Addr("10.10.0.24")
	w, err := pcap.Create(in)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1700000000, 0)
	for i, o := range []packettest.Options{
		{EthSrc: client, EthDst: web, Src: clientIP, Dst: webIP, Seq: 100},
		{EthSrc: web, EthDst: client, Src: webIP, Dst: clientIP, SrcPort: 80, DstPort: 1000, Seq: 500, Ack: 101, TCPFlags: packet.TCPSyn | packet.TCPAck},
		{EthSrc: client, EthDst: web, Src: packettest.Addr("10.10.0.66"), Dst: webIP},
		{EthSrc: [6]byte{2, 9, 9, 9, 9, 9}, EthDst: web, Src: clientIP, Dst: webIP},
	} {
		if err := w.Write(at.Add(time.Duration(i)*time.Millisecond), packettest.TCP4(o)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, from := range []pipeline.Source{twoNodes(t), pipeline.Manifests{Path: "../../examples/two-nodes/objects", Node: "node-a"}} {
		t.Run(from.String(), func(t *testing.T) {
			checkReplay(t, &Replay{From: from, In: in, Out: out, Tunnels: []string{config.DefaultTunnel}}, at)
		})
	}
}

// checkReplay replays the capture of TestReplay, whose first packet came at a
// time.
func checkReplay(t *testing.T, replay *Replay, at time.Time) {
	t.Helper()
	r, err := replay.Run()
	if err != nil {
		t.Fatal(err)
	}
	if r.Read != 4 || r.Unknown != 1 || r.Left["web-a"] != 1 || r.Left["client-a"] != 1 {
		t.Errorf("%+v", r)
	}
	if len(r.Drops) != 1 || r.Drops[0].Table != "SpoofGuard" || r.Drops[0].Packets != 1 {
		t.Errorf("drops %+v", r.Drops)
	}
	written, err := pcap.Open(replay.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close()
	for i := range 2 {
		p, err := written.Next()
		if err != nil || !p.Time.Equal(at.Add(time.Duration(i)*time.Millisecond)) {
			t.Errorf("packet %d written at %v, %v", i, p.Time, err)
		}
	}
}

// TestReplayLeavesOutWhatIsCut: a packet of which the capture holds only the beginning
// is not taken for one that lies about its length, and dropped for that.
func TestReplayLeavesOutWhatIsCut(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.pcap")
	w, err := pcap.Create(in)
	if err != nil {
		t.Fatal(err)
	}
	whole := packettest.TCP4(packettest.Options{
		EthSrc: [6]byte{0x5e, 0xb5, 0xe3, 0xa6, 0x90, 0xb7}, EthDst: [6]byte{0xfa, 0xb7, 0x53, 0x74, 0x21, 0xa6},
		Src: packettest.Addr("10.10.0.26"), Dst: packettest.Addr("10.10.0.24"), Payload: make([]byte, 100),
	})
	at := time.Unix(1700000000, 0)
	if err := errors.Join(w.Write(at, whole[:96]), w.Write(at, whole), w.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(b[24+12:], uint32(len(whole))) // the first packet's length on the wire
	if err := os.WriteFile(in, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := (&Replay{From: twoNodes(t), In: in, InPort: "client-a"}).Run()
	if err != nil {
		t.Fatal(err)
	}
	if r.Read != 2 || r.Cut != 1 || r.Left["web-a"] != 1 || len(r.Drops) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestReplayKeepsItsInput: a capture is not written over while it is read.
func TestReplayKeepsItsInput(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.pcap")
	w, err := pcap.Create(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(time.Unix(1700000000, 0), packettest.TCP4(packettest.Options{})), w.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	link := in + ".link"
	if err := os.Symlink(in, link); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{in, link} {
		if _, err := (&Replay{From: twoNodes(t), In: in, Out: out, InPort: "client-a"}).Run(); err == nil {
			t.Errorf("written to %s", out)
		}
	}
	if after, err := os.ReadFile(in); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the capture has changed: %d bytes, were %d, %v", len(after), len(before), err)
	}
}
