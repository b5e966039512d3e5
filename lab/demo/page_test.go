package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/internal/browsertest"
)

// The page of whole agents, in a browser: rates of packets between pods, and one of
// them on its way over both Nodes.

// pageAddress is where each agent of the lab serves its page.
const pageAddress = "127.0.0.1:10353"

// reach forwards a port of the loopback to a Node's own one, as ssh -L does, and
// returns it.
func (w *world) reach(t *testing.T, node, address string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			var far net.Conn
			err = w.lab.In(node, func() error { far, err = net.Dial("tcp", address); return err })
			if err != nil {
				near.Close()
				continue
			}
			go func() { io.Copy(far, near); far.Close() }()
			go func() { io.Copy(near, far); near.Close() }()
		}
	}()
	return ln.Addr().String()
}

// pageLab is the plain lab, whose agents serve their pages, with datagrams from client-a to
// client-b, on the other Node, and back, until the test ends.
func pageLab(t *testing.T) *world {
	t.Helper()
	w := plainLab(t).world(t)
	back := w.numbers(t, "client-a", "client-b", time.Millisecond)
	waitUntil(t, "datagrams from the other Node", func() bool { return back.Load() > 100 })
	return w
}

// wantRates wants the map to have rates with the second counters of the stream: two
// readings after it was opened, whatever the clock says.
func wantRates(b *browsertest.Browser) {
	b.Helper()
	b.Poll(`document.querySelectorAll("#map .edge.busy").length > 10`)
	if n := b.Value(`document.querySelector("#pulse").dataset.first`); n != "2" {
		b.Errorf("the first rates came with reading %s", n)
	}
}

// pick watches packets that meet an expression, and has the first walk.
func pick(b *browsertest.Browser, filter string) {
	b.Helper()
	b.Value(`location.hash = "#/drops"`) // an earlier watch ends
	b.Poll(`document.querySelector("#live") === null`)
	b.Value(`location.hash = "#/walk"`)
	b.Poll(`document.querySelector("#typed select")?.hidden === false`) // the examples, which move what is below them
	b.Click("#panel details summary")
	b.Type("#live input", filter)
	b.Click("#live button")
	b.Poll(`document.querySelector("#live .about").textContent.endsWith("done")`)
	b.Click(".caught button")
	b.Poll(`document.querySelector("#way .where")?.textContent.startsWith("1 of ")`)
}

// TestPageOfLab opens the page that an agent serves: rates, a live packet's walk
// over this Node's part of its way, and where the rest is to be seen.
func TestPageOfLab(t *testing.T) {
	w := pageLab(t)
	invitation, err := answer.PageURL(w.lab.Socket("node-a"))
	if err != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t, strings.Replace(invitation, pageAddress, w.reach(t, "node-a", pageAddress), 1))
	wantRates(b)
	b.Shot("lab-map")
	if name := b.Value(`document.querySelector("#here").textContent`); name != "node-a" {
		t.Errorf("the page is of %q", name)
	}
	pick(b, "udp and src host 10.10.0.26")
	b.Key("End")
	b.Poll(`document.querySelector("#way .elsewhere")?.textContent.startsWith("It goes on at node-b (192.168.77.103).")`)
	b.Poll(`document.querySelectorAll("#map .table.on").length > 15`)
	b.Shot("lab-walk-out")
	pick(b, "udp and src host 10.10.1.7")
	b.Poll(`document.querySelector("#way .elsewhere")?.textContent.startsWith("It came in a tunnel from node-b (192.168.77.103).")`)
	b.Shot("lab-walk-in")
	b.NoFaults()
}

// TestPageOfBothNodes serves the page of both agents: each Node's map with its own
// rates, and a live packet on its whole way.
func TestPageOfBothNodes(t *testing.T) {
	w := pageLab(t)
	ctx, stop := context.WithCancel(t.Context())
	invitations, ended := make(chan string, 3), make(chan error, 1)
	s := answer.PageServer{
		Agents: []*api.Client{w.agent("node-a"), w.agent("node-b")}, Address: "127.0.0.1:0",
		Invite: func(url string) error { invitations <- url; return nil },
	}
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	b := browsertest.Open(t, <-invitations)
	for _, node := range []string{"node-a", "node-b"} {
		b.Goto(fmt.Sprintf("%s/?node=%s#/", b.Base, node))
		b.Poll(fmt.Sprintf(`document.querySelector("#here select")?.value === %q`, node))
		wantRates(b)
	}
	b.Goto(b.Base + "/#/")
	pick(b, "udp and src host 10.10.0.26")
	nodes := b.Value(`[...document.querySelectorAll("#way .on-node")].map((e) => e.textContent).join()`)
	if nodes != "node-a,node-b" {
		t.Errorf("the way is over %q", nodes)
	}
	b.Poll(`document.querySelector("#way .where").textContent.endsWith(", on node-a")`)
	b.Key("End")
	b.Poll(`document.querySelector("#way .where").textContent.endsWith(", on node-b")`)
	b.Poll(`document.querySelector("#way .verdict").textContent === ` + "`output to port 36 (\"client-b\")`")
	b.Poll(`document.querySelectorAll("#map .table.on").length > 5`)
	b.Shot("lab-both")
	// The table of the last step is the other Node's, with entries that are busy there.
	b.Click("#way .hop h3 a")
	b.Poll(`new URLSearchParams(location.search).get("node") === "node-b" && document.querySelectorAll("#panel .entries li.busy").length > 0`)
	b.Goto(b.Base + "/#/nodes")
	b.Click(`#panel .node h3 a`)
	b.Poll(`document.querySelector("#here select")?.value === "node-b" && document.querySelector("#panel .node.here h3")?.textContent.startsWith("node-b")`)
	b.Shot("lab-nodes")
	b.NoFaults()
}
