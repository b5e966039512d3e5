package agent

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/switchd"
)

// liveAgent is an agent of examples/web-app whose files lie in a directory of the
// test, without ports and Node.
func liveAgent(t testing.TB, c *Config, log *slog.Logger) *Agent {
	t.Helper()
	a := &Agent{config: c, log: log, told: make(chan struct{})}
	o := c.options()
	o.snapshot, o.ctFile, o.seed = c.snapshotFile(), c.besideSocket("ct.arena"), 1
	var err error
	if o.clock, err = switchd.BootClock(); err != nil {
		t.Fatal(err)
	}
	ports, err := a.install(o)
	if err != nil {
		t.Fatal(err)
	}
	a.pods = newPodPorts(ports, a.local, nil, log)
	a.live.setPorts, a.live.setNode = a.pods.set, func(*control.NodeSide) error { return nil }
	return a
}

// keptNode is liveNode with a socket of its own, and endpoints that are chosen
// alike every time.
func keptNode(t testing.TB) (c *Config, manifests string) {
	t.Helper()
	c, manifests = liveNode(t)
	c.Socket = filepath.Join(t.TempDir(), "agent.sock")
	c.Conntrack.Max = 2000
	return c, manifests
}

func closePipeline(t testing.TB, p *pipeline) {
	t.Helper()
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

// learn installs an entry that a packet might have made.
func learn(t *testing.T, a *Agent, text string, age time.Duration) {
	t.Helper()
	e, err := flow.ParseEntry(text, a.sw.Names())
	if err == nil {
		err = a.sw.Relearn([]dataplane.Learned{{Entry: e, Age: age}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

const affinityEntry = "table=SessionAffinity,hard_timeout=300,priority=190,tcp,nw_src=10.10.0.26,nw_dst=10.96.0.1,tp_dst=80 actions=set_field:0xa0a0018->reg3"

// dumped is all that a switch holds, as text.
func dumped(p *pipeline) (lines []string) {
	for _, f := range p.sw.Flows() {
		lines = append(lines, f.Text(flow.Format{Names: p.sw.Names()}))
	}
	for _, g := range p.sw.Groups() {
		lines = append(lines, g.Text(p.sw.Names()))
	}
	for _, m := range p.sw.Meters() {
		lines = append(lines, m.Text())
	}
	return lines
}

// TestSnapshotRoundTrip: what one agent keeps, the next begins with: entries,
// groups, meters, names, what was learned, ports, and what it asks of the Node.
func TestSnapshotRoundTrip(t *testing.T) {
	c, manifests := keptNode(t)
	var log bytes.Buffer
	a := liveAgent(t, c, slog.New(slog.NewTextHandler(&log, nil)))
	learn(t, a, affinityEntry, 100*time.Second)
	var kept keptState
	a.keepSnapshot(c.snapshotFile(), &kept, learnedPause)
	want, ports, node := dumped(a.pipeline), a.pods.wanted(), a.live.objects.NodeSide()
	closePipeline(t, a.pipeline)
	if st, err := os.Stat(c.snapshotFile()); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}

	if err := os.Rename(manifests, manifests+".away"); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	a = liveAgent(t, c, slog.New(slog.NewTextHandler(&log, nil)))
	defer closePipeline(t, a.pipeline)
	if got := dumped(a.pipeline); !slices.Equal(got, want) {
		t.Errorf("the next agent has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, f := range a.sw.Flows() {
		if f.Learned && (f.Duration < 100*time.Second || f.Duration > 200*time.Second) {
			t.Errorf("%v is %v old", f.Entry, f.Duration)
		}
	}
	wantPorts(t, a.pods.wanted(), ports...)
	if got := a.live.objects.NodeSide(); !reflect.DeepEqual(got, node) {
		t.Errorf("the Node is asked for %+v, want %+v", got, node)
	}
	if !strings.Contains(log.String(), fmt.Sprintf("flow snapshot restored: %d entries", len(a.sw.Flows())-1)) {
		t.Errorf("logged %s", &log)
	}

	generation := a.sw.Generation()
	read := make(chan error, 1)
	if a.live.runFirstRead(read); <-read == nil {
		t.Fatal("manifests that are away were read")
	}
	if err := os.Rename(manifests+".away", manifests); err != nil {
		t.Fatal(err)
	}
	if a.live.runFirstRead(read); true {
		if err := <-read; err != nil {
			t.Fatal(err)
		}
	}
	a.live.resume()
	if got := dumped(a.pipeline); !slices.Equal(got, want) || a.sw.Generation() != generation+1 {
		t.Errorf("after %d changes there is\n%s\nwant\n%s", a.sw.Generation()-generation, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	<-a.live.synced
}

// TestSnapshotLongLines: what does not fit into a line of ovs-ofctl goes over
// several.
func TestSnapshotLongLines(t *testing.T) {
	g, e := &flow.Group{ID: 9, Type: flow.GroupSelect}, &flow.Entry{Table: 3, Priority: 7}
	for i := range uint32(5001) {
		g.Buckets = append(g.Buckets, flow.Bucket{ID: i, Weight: 100, Actions: []flow.Action{flow.Output{Port: 1 + i}}})
		e.Actions = append(e.Actions, flow.Conjunction{ID: 1 + i, Clause: 1, N: 2})
	}
	was := &snapshot{snapshotHead: snapshotHead{Memory: &control.Memory{}}, entries: []*flow.Entry{e}, groups: []*flow.Group{g, {ID: 10}}}
	text, err := was.encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.entries, was.entries) || len(s.groups) != 2 || !reflect.DeepEqual(s.groups[0], g) {
		t.Errorf("%d entries and %d groups of %d actions and buckets", len(s.entries), len(s.groups), len(s.entries[0].Actions)+len(s.groups[0].Buckets))
	}
}

// TestSnapshotLoads: set_field takes no mask for nw_tos and nw_ttl, so an entry or a
// group that writes a part of them is kept as load.
func TestSnapshotLoads(t *testing.T) {
	e, err := flow.ParseEntry("table=3,ip actions=load:5->NXM_OF_IP_TOS[2..7],output:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := flow.ParseGroup("group_id=1,type=all,bucket=actions=load:1->NXM_NX_IP_TTL[0],output:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &snapshot{snapshotHead: snapshotHead{Memory: &control.Memory{}}, entries: []*flow.Entry{e}, groups: []*flow.Group{g}}
	b, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseSnapshot(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.entries, s.entries) || !reflect.DeepEqual(again.groups, s.groups) {
		t.Errorf("%v %v is kept as %v %v", s.entries, s.groups, again.entries, again.groups)
	}
}

// TestSnapshotRefused: a file that is not what an agent of this boot and
// configuration wrote is not begun with, and the log says why in one line.
func TestSnapshotRefused(t *testing.T) {
	c, _ := keptNode(t)
	a := liveAgent(t, c, slog.New(slog.DiscardHandler))
	s, err := a.takeSnapshot()
	closePipeline(t, a.pipeline)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	other := func(change func(*snapshot)) []byte {
		n := *s
		change(&n)
		b, err := n.encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	bad := &flow.Entry{Table: 4, Actions: []flow.Action{flow.GroupAction{ID: 77}}}
	for want, text := range map[string][]byte{
		"there is none":                       nil,
		"it has another schema, or none":      []byte("antrail flow snapshot 0 x\n"),
		"it is torn":                          whole[:len(whole)-10],
		"it is from before the machine":       other(func(s *snapshot) { s.Boot = strings.Repeat("0", 32) }),
		"it belongs to another configuration": other(func(s *snapshot) { s.Config = "x" }),
		"it is from the future":               other(func(s *snapshot) { s.Taken += int64(time.Hour) }),
		"line 2: something is missing":        other(func(s *snapshot) { s.Memory = nil }),
		"line 2: port":                        other(func(s *snapshot) { s.Ports = []snapshotPort{{Port: Port{Name: "a", Link: "a"}}} }),
		"conjunction id 1 of":                 other(func(s *snapshot) { s.Memory = &control.Memory{Rules: []control.RuleNumber{{ID: 1}}} }),
		"group 77 does not exist":             other(func(s *snapshot) { s.entries = []*flow.Entry{bad} }),
		"is no group, flow or learned":        sealed(whole, "hello world"),
		"line 2: invalid character":           sealed([]byte(snapshotSchema+"\n{]\n"), ""),
		`"yesterday\" is no time`:             sealed(whole, "learned yesterday 1s table=1 actions=drop"),
		"unknown action":                      sealed(whole, "flow table=1 actions=nonsense"),
	} {
		if text == nil {
			os.Remove(c.snapshotFile())
		} else if err := os.WriteFile(c.snapshotFile(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		a := liveAgent(t, c, slog.New(slog.NewTextHandler(&log, nil)))
		if !slices.ContainsFunc(strings.Split(log.String(), "\n"), func(line string) bool {
			return strings.Contains(line, `msg="no flow snapshot restored"`) && strings.Contains(line, want)
		}) {
			t.Errorf("logged %s, want %s", &log, want)
		}
		if n := len(a.sw.Flows()); n != len(s.entries) || a.live.restored != nil {
			t.Errorf("%s: %d entries, want the %d of the manifests", want, n, len(s.entries))
		}
		closePipeline(t, a.pipeline)
	}
}

// sealed is a file with a line more and a checksum that is right.
func sealed(text []byte, line string) []byte {
	_, body, _ := bytes.Cut(text, []byte("\n"))
	if line != "" {
		body = append(slices.Clone(body), line+"\n"...)
	}
	return append([]byte(snapshotSchema+checksum(body)+"\n"), body...)
}

// BenchmarkSnapshot writes and reads what one Node of examples/web-app has.
func BenchmarkSnapshot(b *testing.B) {
	c, _ := keptNode(b)
	a := liveAgent(b, c, slog.New(slog.DiscardHandler))
	defer closePipeline(b, a.pipeline)
	s, err := a.takeSnapshot()
	if err != nil {
		b.Fatal(err)
	}
	text, err := s.encode()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.encode(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(text))/float64(len(s.entries)), "B/entry")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := parseSnapshot(text); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(s.entries)), "entries")
	})
}

// FuzzSnapshot: whatever stands in the file, reading ends with a snapshot that can
// be written and read again, or with an error.
func FuzzSnapshot(f *testing.F) {
	for _, line := range []string{
		"flow table=1,ip actions=drop", "group group_id=9,type=select,bucket=bucket_id:0,actions=output:1",
		"learned 1s 2s table=2,tcp actions=output:1", "flow table=1 actions=conjunction(1,1/2)\nflow table=1 actions=conjunction(2,1/2)",
	} {
		f.Add([]byte(`{"Memory":{},"First":1,"Tables":{"1":"a"},"Ports":[{"name":"a","link":"a","ofPort":3}]}`), []byte(line+"\n"))
	}
	f.Fuzz(func(t *testing.T, head, lines []byte) {
		s, err := parseSnapshot(sealed(slices.Concat([]byte("\n"), head, []byte("\n"), lines), ""))
		if err != nil {
			return
		}
		text, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseSnapshot(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		p, err := newPipeline(options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.local.Close()
		l := &live{config: &Config{NodeName: "node-a"}, store: control.NewStore(control.DeriveEndpoints)}
		l.objects = l.newObjects(p)
		if l.install(p, s) == nil {
			_ = p.sw.Relearn(s.learned)
			dumped(p)
		}
	})
}
