package agent

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/host/preflight"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/switchd/local"
)

// asker asks an agent that runs as a process.
type asker struct {
	*api.Client
	t *testing.T
}

func (a asker) text(path string, q url.Values) string {
	a.t.Helper()
	text, err := a.Get(a.t.Context(), path, q)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(text)
}

// until waits until an answer has a text.
func (a asker) until(path, want string) {
	a.t.Helper()
	nstest.Until(a.t, path+" has "+want, func() bool { return strings.Contains(a.text(path, nil), want) })
}

// wantLine checks that an answer has a line with some words, in their order, or none.
func (a asker) wantLine(path string, there bool, words ...string) {
	a.t.Helper()
	text := a.text(path, nil)
	for line := range strings.Lines(text) {
		rest, all := line, true
		for _, w := range words {
			_, after, ok := strings.Cut(rest, w)
			rest, all = after, all && ok
		}
		if all {
			if !there {
				a.t.Errorf("%s has the line %q", path, line)
			}
			return
		}
	}
	if there {
		a.t.Errorf("%s has no line with %q:\n%s", path, words, text)
	}
}

// check is the line of a check of the running agent.
func (a asker) check(name string) preflight.Line {
	a.t.Helper()
	var all []preflight.Line
	if err := a.JSON(a.t.Context(), "/check", nil, &all); err != nil {
		a.t.Fatal(err)
	}
	for _, l := range all {
		if l.Check == name {
			return l
		}
	}
	a.t.Fatalf("there is no check %q in %+v", name, all)
	return preflight.Line{}
}

func (a asker) noteOf(pod string) string {
	a.t.Helper()
	all, err := a.DroppedPackets(a.t.Context(), &api.DropQuery{Pod: pod})
	if err != nil {
		a.t.Fatal(err)
	}
	return all.Note
}

func (a asker) whyText(from, to string) string {
	a.t.Helper()
	answer, err := api.Why(a.t.Context(), []*api.Client{a.Client}, &api.WhyRequest{From: from, To: to})
	if err != nil {
		a.t.Fatal(err)
	}
	var b strings.Builder
	answer.WriteText(&b)
	return b.String()
}

// TestLinkGone: a Pod whose link is deleted under a running agent is reported wherever
// one is whose link is down; and no more when a link of that name is there.
func TestLinkGone(t *testing.T) {
	node, c := upgradedNode(t)
	p := startProcess(t, node, c)
	wantReady(t, c)
	a := asker{api.NewClient(c.Socket), t}
	a.until("/pods", "client-a")
	const gone, pod = "link client-a-1 is gone", "default/client-a"
	a.wantLine("/pods", false, "client-a", "link client-a-1")
	a.wantLine("/pods", true, "db-a", "installed, link db-a is not there") // never was

	if err := node.Links().LinkDel(node.Link(t, "client-a-1")); err != nil {
		t.Fatal(err)
	}
	a.until("/pods", gone)
	a.wantGone(gone, pod)
	p.wantSaid(t, "its link is gone")

	other := nstest.New(t)
	nstest.AddVeth(t, node, "client-a-1", other, "eth0")
	nstest.Until(t, "the port is open again", func() bool { return !strings.Contains(a.text("/pods", nil), "link client-a-1") })
	a.wantLine("/metrics", true, `antrail_port_up{driver="afpacket",port="client-a"} 1`)
	a.wantLine("/readyz", false, "client-a")
	if note := a.noteOf(pod); note != "" {
		t.Errorf("drops: %q", note)
	}
	if text := a.whyText("node", pod+":80"); !strings.HasPrefix(text, "allowed: ") {
		t.Errorf("why: %s", text)
	}
	if l := a.check("links"); strings.Contains(l.Found, "client-a") {
		t.Errorf("check --live: %+v", l)
	}

	if err := other.Links().LinkSetDown(other.Link(t, "eth0")); err != nil {
		t.Fatal(err)
	}
	const down = "link client-a-1 is down"
	a.until("/pods", down)
	a.wantLine("/readyz", true, "links: warning: ", "Pod default/client-a: "+down)
}

// midway is a switch that is looked at before the agent knows that a port is in it, and
// again before it knows that the port has left.
type midway struct {
	*local.Switch
	look func()
}

func (m midway) open(p config.Port) (podports.Opened, error) {
	port := memory.New(p.Link, memory.Options{})
	err := m.Switch.AddSecuredPort(p.OFPort, port, l2.PortSecurity{})
	m.look()
	return port, err
}

func (m midway) RemovePort(no uint32) error {
	m.look()
	return m.Switch.RemovePort(no)
}

// TestPortRecordOnce: a port that enters or leaves the switch is listed once at any moment;
// two records of it would be a series twice, and metrics would be refused.
func TestPortRecordOnce(t *testing.T) {
	c, _ := keptNode(t)
	a := liveAgent(t, c, slog.New(slog.DiscardHandler), nil)
	defer closePipeline(t, a.Pipeline)
	const no = 77
	looks := 0
	once := func() {
		looks++
		n := 0
		for _, r := range a.PortRecords() {
			if r.No == no {
				n++
			}
		}
		if n != 1 {
			t.Errorf("look %d: the port has %d records, want 1", looks, n)
		}
	}
	ns := nstest.New(t)
	nstest.AddVeth(t, ns, "web-a", ns, "eth0")
	ns.Do(t, func() {
		want := []config.Port{{Name: "web-a", OFPort: no, Link: "web-a"}}
		sw := midway{a.Local, once}
		a.Pods = podports.New(want, sw, sw.open, slog.New(slog.DiscardHandler))
		a.Pods.Reconcile()
		once()
		if err := ns.Links().LinkDel(ns.Link(t, "web-a")); err != nil {
			t.Error(err)
			return
		}
		a.Pods.Reconcile()
		once()
	})
	if looks != 4 {
		t.Errorf("%d looks, want 4", looks)
	}
}

// wantGone checks all places that report a Pod's link.
func (a asker) wantGone(gone, pod string) {
	a.t.Helper()
	a.wantLine("/pods", true, "client-a", "installed, "+gone)
	a.wantLine("/readyz", true, "links: warning: ", "Pod "+pod+": "+gone)
	a.wantLine("/metrics", true, `antrail_port_up{driver="afpacket",port="client-a"} 0`)
	a.wantLine("/ports", true, "not in the switch: "+gone)
	if l := a.check("links"); l.State != preflight.Warn || !strings.Contains(l.Found, "Pod "+pod+": "+gone) {
		a.t.Errorf("check --live: %+v", l)
	}
	if note := a.noteOf(pod); note != "Pod "+pod+", whose "+gone+": packets to it are dropped (no_such_port)" {
		a.t.Errorf("drops: %q", note)
	}
	if text := a.whyText("node", pod+":80"); !strings.HasPrefix(text, "denied: ") || !strings.Contains(text, "ends at Pod "+pod+", whose "+gone) || !strings.Contains(text, "the port opens as soon as there is a link client-a-1") {
		a.t.Errorf("why: %s", text)
	}
	if text := a.whyText(pod, "default/web-a:80"); !strings.Contains(text, "; but "+pod+" sends nothing to the switch: its "+gone) || !strings.Contains(text, "the port opens as soon as there is a link client-a-1") {
		a.t.Errorf("why from it: %s", text)
	}
	var counters api.Counters
	if err := json.Unmarshal([]byte(a.text("/counters", nil)), &counters); err != nil {
		a.t.Fatal(err)
	}
	for _, p := range counters.Ports {
		if p.Pod == pod && (p.Missing != gone || p.Up) {
			a.t.Errorf("the page and top: %+v", p)
		}
	}
	var rows []control.PodRow
	if err := a.JSON(a.t.Context(), "/pods", nil, &rows); err != nil {
		a.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Text == "Pod/"+pod && r.Link != gone {
			a.t.Errorf("get pods -o json: %+v", r)
		}
	}
}
