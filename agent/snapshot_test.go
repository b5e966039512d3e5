package agent

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/agent/snapshot"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/switchd"
)

// liveAgent is an agent of examples/web-app whose files lie in a directory of the
// test, without ports and Node.
func liveAgent(t testing.TB, c *config.Config, log *slog.Logger) *Agent {
	t.Helper()
	a := &Agent{config: c, log: log, told: make(chan struct{})}
	o := pipeline.OptionsOf(c)
	o.Snapshot, o.ConntrackFile, o.Seed = c.SnapshotFile(), c.BesideSocket("ct.arena"), 1
	var err error
	if o.Clock, err = switchd.BootClock(); err != nil {
		t.Fatal(err)
	}
	ports, err := a.install(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Pods = podports.New(ports, a.Local, nil, log)
	a.live.setPorts, a.live.setNode = a.Pods.Set, func(*ledger.NodeSide) error { return nil }
	return a
}

// keptNode is liveNode with a socket of its own, and endpoints that are chosen
// alike every time.
func keptNode(t testing.TB) (c *config.Config, manifests string) {
	t.Helper()
	c, manifests = liveNode(t)
	c.Socket = filepath.Join(t.TempDir(), "agent.sock")
	c.Conntrack.Max = 2000
	return c, manifests
}

func closePipeline(t testing.TB, p *pipeline.Pipeline) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// learn installs an entry that a packet might have made.
func learn(t *testing.T, a *Agent, text string, age time.Duration) {
	t.Helper()
	e, err := parse.Entry(text, a.Switch.Names())
	if err == nil {
		err = a.Switch.Relearn([]telemetry.Learned{{Entry: e, Age: age}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

const affinityEntry = "table=SessionAffinity,hard_timeout=300,priority=190,tcp,nw_src=10.10.0.26,nw_dst=10.96.0.1,tp_dst=80 actions=set_field:0xa0a0018->reg3"

// dumped is all that a switch holds, as text.
func dumped(p *pipeline.Pipeline) (lines []string) {
	for _, f := range p.Switch.Flows() {
		lines = append(lines, f.Text(flow.Format{Names: p.Switch.Names()}))
	}
	for _, g := range p.Switch.Groups() {
		lines = append(lines, g.Text(p.Switch.Names()))
	}
	for _, m := range p.Switch.Meters() {
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
	a.keepSnapshot(c.SnapshotFile(), &kept, learnedPause)
	want, ports, node := dumped(a.Pipeline), a.Pods.Wanted(), a.live.objects.NodeSide()
	closePipeline(t, a.Pipeline)
	if st, err := os.Stat(c.SnapshotFile()); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}

	if err := os.Rename(manifests, manifests+".away"); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	a = liveAgent(t, c, slog.New(slog.NewTextHandler(&log, nil)))
	defer closePipeline(t, a.Pipeline)
	if got := dumped(a.Pipeline); !slices.Equal(got, want) {
		t.Errorf("the next agent has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, f := range a.Switch.Flows() {
		if f.Learned && (f.Duration < 100*time.Second || f.Duration > 200*time.Second) {
			t.Errorf("%v is %v old", f.Entry, f.Duration)
		}
	}
	wantPorts(t, a.Pods.Wanted(), ports...)
	if got := a.live.objects.NodeSide(); !reflect.DeepEqual(got, node) {
		t.Errorf("the Node is asked for %+v, want %+v", got, node)
	}
	if !strings.Contains(log.String(), fmt.Sprintf("flow snapshot restored: %d entries", len(a.Switch.Flows())-1)) {
		t.Errorf("logged %s", &log)
	}

	generation := a.Switch.Generation()
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
	if got := dumped(a.Pipeline); !slices.Equal(got, want) || a.Switch.Generation() != generation+1 {
		t.Errorf("after %d changes there is\n%s\nwant\n%s", a.Switch.Generation()-generation, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	<-a.live.synced
}

// TestSnapshotRefused: a file that is not what an agent of this boot and
// configuration wrote is not begun with, and the log says why in one line.
func TestSnapshotRefused(t *testing.T) {
	c, _ := keptNode(t)
	a := liveAgent(t, c, slog.New(slog.DiscardHandler))
	s, err := a.takeSnapshot()
	closePipeline(t, a.Pipeline)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	other := func(change func(*snapshot.Snapshot)) []byte {
		n := *s
		change(&n)
		b, err := n.Encode()
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
		"it is from before the machine":       other(func(s *snapshot.Snapshot) { s.Boot = strings.Repeat("0", 32) }),
		"it belongs to another configuration": other(func(s *snapshot.Snapshot) { s.Config = "x" }),
		"it is from the future":               other(func(s *snapshot.Snapshot) { s.Taken += int64(time.Hour) }),
		"line 2: something is missing":        other(func(s *snapshot.Snapshot) { s.Memory = nil }),
		"line 2: port":                        other(func(s *snapshot.Snapshot) { s.Ports = []snapshot.Port{{Port: config.Port{Name: "a", Link: "a"}}} }),
		"conjunction id 1 of": other(func(s *snapshot.Snapshot) {
			s.Memory = &control.Memory{RuleNumbers: policy.RuleNumbers{Rules: []policy.RuleNumber{{ID: 1}}}}
		}),
		"group 77 does not exist":      other(func(s *snapshot.Snapshot) { s.Entries = []*flow.Entry{bad} }),
		"is no group, flow or learned": sealed(whole, "hello world"),
		"line 2: invalid character":    sealed([]byte("\n{]\n"), ""),
		`"yesterday\" is no time`:      sealed(whole, "learned yesterday 1s table=1 actions=drop"),
		"unknown action":               sealed(whole, "flow table=1 actions=nonsense"),
	} {
		if text == nil {
			os.Remove(c.SnapshotFile())
		} else if err := os.WriteFile(c.SnapshotFile(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		a := liveAgent(t, c, slog.New(slog.NewTextHandler(&log, nil)))
		if !slices.ContainsFunc(strings.Split(log.String(), "\n"), func(line string) bool {
			return strings.Contains(line, `msg="no flow snapshot restored"`) && strings.Contains(line, want)
		}) {
			t.Errorf("logged %s, want %s", &log, want)
		}
		if n := len(a.Switch.Flows()); n != len(s.Entries) || a.live.restored != nil {
			t.Errorf("%s: %d entries, want the %d of the manifests", want, n, len(s.Entries))
		}
		closePipeline(t, a.Pipeline)
	}
}

// sealed is a file with a line more and a checksum that is right.
func sealed(text []byte, line string) []byte {
	_, body, _ := bytes.Cut(text, []byte("\n"))
	if line != "" {
		body = append(slices.Clone(body), line+"\n"...)
	}
	return append(fmt.Appendf(nil, "antrail flow snapshot 1 %x\n", sha256.Sum256(body)), body...)
}

// BenchmarkSnapshot writes and reads what one Node of examples/web-app has.
func BenchmarkSnapshot(b *testing.B) {
	c, _ := keptNode(b)
	a := liveAgent(b, c, slog.New(slog.DiscardHandler))
	defer closePipeline(b, a.Pipeline)
	s, err := a.takeSnapshot()
	if err != nil {
		b.Fatal(err)
	}
	text, err := s.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Encode(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(text))/float64(len(s.Entries)), "B/entry")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := snapshot.Parse(text); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(s.Entries)), "entries")
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
		s, err := snapshot.Parse(sealed(slices.Concat([]byte("\n"), head, []byte("\n"), lines), ""))
		if err != nil {
			return
		}
		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := snapshot.Parse(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		p, err := pipeline.NewPipeline(pipeline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Local.Close()
		l := &live{config: &config.Config{NodeName: "node-a"}, store: store.NewStore(store.DeriveEndpoints)}
		l.objects = l.newObjects(p)
		if l.install(p, s) == nil {
			_ = p.Switch.Relearn(s.Learned)
			dumped(p)
		}
	})
}
