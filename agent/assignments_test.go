package agent

import (
	"bytes"
	"encoding/json"
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
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/switchd"
)

// liveAgent is an agent of examples/web-app whose files lie in a directory of the
// test, without ports and Node. Its switch begins with the entries in kept.
func liveAgent(t testing.TB, c *config.Config, log *slog.Logger, kept *keptSwitch) *Agent {
	t.Helper()
	a := &Agent{config: c, log: log, told: make(chan struct{})}
	o := pipeline.OptionsOf(c)
	o.Place, o.Seed = &switchd.ConnectionFile{Path: c.BesideSocket("ct.arena")}, 1
	var err error
	if o.Clock, err = switchd.BootClock(); err != nil {
		t.Fatal(err)
	}
	if a.Pipeline, err = pipeline.NewPipeline(o); err != nil {
		t.Fatal(err)
	}
	kept.restore(t, a.Pipeline)
	ports, err := a.installObjects(nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Pods = podports.New(ports, a.Local, nil, log)
	a.live.setPorts, a.live.setNode = a.Pods.Set, func(*ledger.NodeSide) error { return nil }
	return a
}

// keptSwitch is what a switch has in its own file (switchd.Process), for the switch after it.
type keptSwitch struct {
	installed *flow.Program
	learned   []telemetry.Learned
	taken     int64
}

// keep lets an agent and its switch keep what they have now.
func keep(t testing.TB, a *Agent) *keptSwitch {
	t.Helper()
	a.writeAssignments(a.config.AssignmentsFile())
	k := &keptSwitch{installed: installedIn(a.Pipeline), taken: a.Clock()}
	for _, f := range a.Local.LearnedFlows() {
		k.learned = append(k.learned, telemetry.Learned{Entry: f.Entry, Age: f.Duration, Idle: f.Idle})
	}
	return k
}

// restore installs the entries in a switch.
func (k *keptSwitch) restore(t testing.TB, p *pipeline.Pipeline) {
	t.Helper()
	if k == nil {
		return
	}
	for i := range k.learned {
		k.learned[i].Age += time.Duration(p.Clock() - k.taken)
	}
	err := p.Switch.Apply(flow.BundleOf(k.installed))
	if err == nil {
		err = p.Local.Relearn(k.learned)
	}
	if err != nil {
		t.Fatal(err)
	}
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

// TestAssignmentsRoundTrip: what one agent and its switch keep, the next begin with: entries,
// groups, meters, names, learned entries, ports, and the Node's side.
func TestAssignmentsRoundTrip(t *testing.T) {
	c, manifests := keptNode(t)
	var log bytes.Buffer
	a := liveAgent(t, c, slog.New(slog.NewTextHandler(&log, nil)), nil)
	learn(t, a, affinityEntry, 100*time.Second)
	kept := keep(t, a)
	want, ports, node := dumped(a.Pipeline), a.Pods.Wanted(), a.live.objects.NodeSide()
	closePipeline(t, a.Pipeline)
	if st, err := os.Stat(c.AssignmentsFile()); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}

	if err := os.Rename(manifests, manifests+".away"); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	a = liveAgent(t, c, slog.New(slog.NewTextHandler(&log, nil)), kept)
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
	if !strings.Contains(log.String(), fmt.Sprintf("assignments restored beside %d entries", len(a.Switch.Flows())-1)) {
		t.Errorf("logged %s", &log)
	}

	if len(a.live.applied) != 0 {
		t.Error("the file is to be written, though no entry has changed")
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
	if len(a.live.applied) != 1 {
		t.Error("entries have changed, and the file is not to be written")
	}
}

// TestAssignmentsRefused: an agent does not begin with a file that is not of its
// configuration and schema. The log says why in one line, and the objects get new numbers.
func TestAssignmentsRefused(t *testing.T) {
	c, _ := keptNode(t)
	a := liveAgent(t, c, slog.New(slog.DiscardHandler), nil)
	kept := keep(t, a)
	want := dumped(a.Pipeline)
	closePipeline(t, a.Pipeline)
	whole, err := os.ReadFile(c.AssignmentsFile())
	if err != nil {
		t.Fatal(err)
	}
	other := func(field, value string) []byte {
		all := map[string]json.RawMessage{}
		if err := json.Unmarshal(whole, &all); err != nil {
			t.Fatal(err)
		}
		all[field] = json.RawMessage(value)
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for why, text := range map[string][]byte{
		"there is none":                       nil,
		"it has schema 0, not 1":              other("schema", "0"),
		"unexpected end of JSON input":        whole[:len(whole)-10],
		"it belongs to another configuration": other("config", `"x"`),
		"it has no numbers":                   other("memory", "null"),
		"has no name, link or number":         other("ports", `[{"name":"a","link":"a"}]`),
		"conjunction id 1 of":                 other("memory", `{"Rules":[{"ID":1}]}`),
	} {
		if text == nil {
			os.Remove(c.AssignmentsFile())
		} else if err := os.WriteFile(c.AssignmentsFile(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		a := liveAgent(t, c, slog.New(slog.NewTextHandler(&log, nil)), kept)
		if !slices.ContainsFunc(strings.Split(log.String(), "\n"), func(line string) bool {
			return strings.Contains(line, `msg="no assignments restored"`) && strings.Contains(line, why)
		}) {
			t.Errorf("logged %s, want %s", &log, why)
		}
		if n := len(a.Switch.Flows()); n != len(kept.installed.Entries) || a.live.restored != nil {
			t.Errorf("%s: %d entries, want the %d of the manifests", why, n, len(want))
		}
		closePipeline(t, a.Pipeline)
	}
}

// TestAssignmentsWithoutEntries: assignments are of no use to a switch without entries, which
// gets those of the manifests.
func TestAssignmentsWithoutEntries(t *testing.T) {
	c, _ := keptNode(t)
	a := liveAgent(t, c, slog.New(slog.DiscardHandler), nil)
	keep(t, a)
	want := len(a.Switch.Flows())
	closePipeline(t, a.Pipeline)
	a = liveAgent(t, c, slog.New(slog.DiscardHandler), nil)
	defer closePipeline(t, a.Pipeline)
	if n := len(a.Switch.Flows()); n != want || a.live.restored != nil {
		t.Errorf("%d entries, restored ports %v; want the %d entries of the manifests", n, a.live.restored, want)
	}
}

// FuzzAssignments: whatever stands in the file, an agent begins with it or says why not.
func FuzzAssignments(f *testing.F) {
	c, _ := keptNode(f)
	a := liveAgent(f, c, slog.New(slog.DiscardHandler), nil)
	keep(f, a)
	closePipeline(f, a.Pipeline)
	whole, err := os.ReadFile(c.AssignmentsFile())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"schema":1,"memory":{"Groups":[{"ID":1},{"ID":1}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(c.AssignmentsFile(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := pipeline.NewPipeline(pipeline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Local.Close()
		if err := p.Switch.Apply(flow.BundleOf(&flow.Program{Names: flow.NewNames()})); err != nil {
			t.Fatal(err)
		}
		l := &live{config: c, store: store.NewStore(store.DeriveEndpoints), log: slog.New(slog.DiscardHandler)}
		l.objects = l.newObjects(p)
		if l.restore(p) == nil && l.restored == nil {
			t.Error("it is restored, and there are no ports")
		}
	})
}
