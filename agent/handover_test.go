package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/kubetest"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// upgradedNode is a Node with the links of two pods, one of them on AF_XDP, and its
// configuration.
func upgradedNode(t *testing.T) (*nstest.Namespace, *Config) {
	t.Helper()
	c, _ := keptNode(t)
	c.Metrics.Listen = new(false)
	node := nstest.New(t)
	node.AddAddress(t, "lo", "192.168.77.102/32")
	nstest.AddVeth(t, node, "client-a-1", nstest.New(t), "eth0")
	nstest.AddVeth(t, node, "web-a-3f2a1", nstest.New(t), "eth0")
	return node, c
}

// portsOpen are the names of the ports that an agent's switch has, sorted.
func portsOpen(t *testing.T, c *Config) (names []string) {
	t.Helper()
	var all []PortRecord
	if err := NewClient(c.Socket).JSON(t.Context(), "/ports", nil, &all); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Missing != "" {
			continue
		}
		names = append(names, fmt.Sprintf("%d %s %s", p.No, p.Link, p.Driver))
	}
	slices.Sort(names)
	return names
}

// TestTakeOver: an agent takes the place of another. Devices stay the very same,
// the switch has the same entries and ports, and when it is stopped it takes all
// back, also what the first one made.
func TestTakeOver(t *testing.T) {
	node, c := upgradedNode(t)
	before := startProcess(t, node, c)
	wantReady(t, c)
	gateway, tap := node.Link(t, c.Gateway.Name).Attrs().Index, node.Link(t, "antrea-tc-tap0").Attrs().Index
	flows, groups, ports := askText(t, c, "/flows"), askText(t, c, "/groups"), portsOpen(t, c)
	if !slices.Contains(ports, "36 client-a-1 afpacket") || !slices.Contains(ports, "37 web-a-3f2a1 afxdp") {
		t.Fatalf("ports %v", ports)
	}

	after := startProcess(t, node, c, takeOverArg)
	before.wantExit(t, exitTakenOver)
	after.wantSaid(t, "taken over from the agent before")
	wantReady(t, c)
	if g, p := node.Link(t, c.Gateway.Name).Attrs().Index, node.Link(t, "antrea-tc-tap0").Attrs().Index; g != gateway || p != tap {
		t.Errorf("links %d and %d are %d and %d now: they were made anew", gateway, tap, g, p)
	}
	if now := portsOpen(t, c); !slices.Equal(now, ports) {
		t.Errorf("ports %v, want %v", now, ports)
	}
	if askText(t, c, "/flows") != flows || askText(t, c, "/groups") != groups {
		t.Errorf("entries or groups are others")
	}
	for _, want := range []string{"port taken over\" port=client-a", "port taken over\" port=web-a", "flow snapshot restored"} {
		after.wantSaid(t, want)
	}

	after.Process.Signal(syscall.SIGTERM)
	after.wantExit(t, 0)
	wantNothingLeft(t, node, c)
}

// TestTakeOverCard: a tunnel on the Node's card goes on, with a program of the new
// agent.
func TestTakeOverCard(t *testing.T) {
	c, _ := keptNode(t)
	c.Metrics.Listen = new(false)
	node, underlay := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "card", underlay, "eth0")
	node.AddAddress(t, "card", "192.168.77.102/24")
	c.Tunnel.Driver, c.Tunnel.Uplink = DriverAFXDP, "card"
	before := startProcess(t, node, c)
	wantReady(t, c)
	ports := portsOpen(t, c)
	if !slices.Contains(ports, "1 antrea-tun0 uplink") {
		t.Fatalf("ports %v", ports)
	}
	program := func() int { return int(node.Link(t, "card").Attrs().Xdp.ProgId) }
	first := program()
	after := startProcess(t, node, c, takeOverArg)
	before.wantExit(t, exitTakenOver)
	after.wantSaid(t, "taken over from the agent before")
	wantReady(t, c)
	if now := portsOpen(t, c); !slices.Equal(now, ports) {
		t.Errorf("ports %v, want %v", now, ports)
	}
	if text := askText(t, c, "/ports"); !strings.Contains(text, "taken over as it was") || program() == first {
		t.Errorf("the tunnel was opened anew, or has its program still\n%s", text)
	}
	after.Process.Signal(syscall.SIGTERM)
	after.wantExit(t, 0)
	wantNothingLeft(t, node, c)
}

// wantNothingLeft checks that a Node is as it was without an agent.
func wantNothingLeft(t *testing.T, node *nstest.Namespace, c *Config) {
	t.Helper()
	if _, err := node.Links().LinkByName(c.Gateway.Name); !errors.As(err, new(netlink.LinkNotFoundError)) {
		t.Errorf("gateway: %v", err)
	}
	if _, err := os.Stat(c.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("socket: %v", err)
	}
	if tables, err := node.Command("nft", "list", "tables").CombinedOutput(); err != nil || len(tables) > 0 {
		t.Errorf("nftables: %s, %v", tables, err)
	}
}

// TestTakeOverOfNobody: without an agent that runs, one starts as usual.
func TestTakeOverOfNobody(t *testing.T) {
	node, c := upgradedNode(t)
	only := startProcess(t, node, c, takeOverArg)
	wantReady(t, c)
	only.Process.Signal(syscall.SIGTERM)
	only.wantExit(t, 0)
	wantNothingLeft(t, node, c)
}

// TestTakeOverWithAPI: so it is with objects from the API, also on a Node without a
// directory for the socket, and while the API is away.
func TestTakeOverWithAPI(t *testing.T) {
	node := nstest.New(t)
	node.AddAddress(t, "lo", "192.168.77.102/32")
	nstest.AddVeth(t, node, "web-a", nstest.New(t), "eth0")
	var api *kubetest.API
	node.Do(t, func() { api = kubetest.New(t) })
	api.Apply(clusterObjects)
	c, no := kubeConfig(t, api), false
	c.Socket, c.Metrics.Listen = filepath.Join(t.TempDir(), "antrail", "agent.sock"), &no
	before := startProcess(t, node, c, takeOverArg)
	wantReady(t, c)
	before.wantSaid(t, "port added\" port=web-a")
	gateway, flows := node.Link(t, DefaultGateway).Attrs().Index, askText(t, c, "/flows")
	api.Down()

	after := startProcess(t, node, c, takeOverArg)
	before.wantExit(t, exitTakenOver)
	for _, want := range []string{"it is taken for what it was", "port taken over\" port=web-a", "taken over from the agent before"} {
		after.wantSaid(t, want)
	}
	wantReady(t, c)
	if g := node.Link(t, DefaultGateway).Attrs().Index; g != gateway {
		t.Errorf("the gateway %d is %d now: it was made anew", gateway, g)
	}
	if askText(t, c, "/flows") != flows {
		t.Errorf("entries are others while the API is away")
	}
	after.Process.Signal(syscall.SIGTERM)
	after.wantExit(t, 0)
}

// TestTakeOverFlowFiles: a pipeline of flow files is read by the new agent itself.
func TestTakeOverFlowFiles(t *testing.T) {
	node, c := upgradedNode(t)
	c.Manifests, c.Flows, c.Ports[0].OFPort, c.Ports[1].OFPort = "", filepath.Join(t.TempDir(), "a.flows"), 36, 37
	if err := os.WriteFile(c.Flows, []byte("table=0,priority=0 actions=drop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := startProcess(t, node, c)
	wantReady(t, c)
	if err := os.WriteFile(c.Flows, []byte("table=0,priority=0 actions=NORMAL\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	startProcess(t, node, c, takeOverArg).wantSaid(t, "taken over from the agent before")
	before.wantExit(t, exitTakenOver)
	wantReady(t, c)
	if flows := askText(t, c, "/flows"); !strings.Contains(flows, "NORMAL") {
		t.Errorf("entries %s", flows)
	}
}

// heirOf is an agent that this test plays: it has been given all that the other has.
func heirOf(t *testing.T, c *Config) *estate {
	t.Helper()
	e, err := meet(t.Context(), c)
	if err != nil || e == nil {
		t.Fatalf("%v, %v", e, err)
	}
	t.Cleanup(func() { e.close(); e.arena.Close() })
	return e
}

// TestOlderHeir: an heir that knows nothing of ports on AF_XDP is given none.
func TestOlderHeir(t *testing.T) {
	node, c := upgradedNode(t)
	startProcess(t, node, c)
	wantReady(t, c)
	conn, err := net.Dial("unix", c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := door.Upgrade(conn, "/take-over", handOverProtocol, nil); err != nil {
		t.Fatal(err)
	}
	heir := talk{door.Talk{UnixConn: conn.(*net.UnixConn)}}
	if err := heir.say(note{Say: sayHello, Config: c.identity()}); err != nil {
		t.Fatal(err)
	}
	var given []string
	for {
		n, fds, err := heir.hear(time.Minute, sayPort, sayArena)
		if err != nil {
			t.Fatal(err)
		}
		door.CloseDescriptors(fds)
		if n.Say == sayArena {
			break
		}
		given = append(given, n.Driver)
	}
	if !slices.Contains(given, DriverAFPacket) || slices.Contains(given, DriverAFXDP) {
		t.Errorf("given: %q", given)
	}
}

// TestHeirFails: an heir that hangs up before it is ready changes nothing, and
// another can take over. One that hangs up afterwards has the agent start again.
func TestHeirFails(t *testing.T) {
	node, c := upgradedNode(t)
	first := startProcess(t, node, c)
	wantReady(t, c)
	ports := portsOpen(t, c)
	gateway := node.Link(t, c.Gateway.Name).Attrs().Index

	e := heirOf(t, c)
	for _, link := range []string{c.Gateway.Name, c.Tunnel.Name, "client-a-1", "web-a-3f2a1", "antrea-tc-tap0"} {
		if !e.Has(link) {
			t.Errorf("%s was not given", link)
		}
	}
	e.close()
	first.wantSaid(t, "another agent was to take over, and has not")
	if now := portsOpen(t, c); !slices.Equal(now, ports) {
		t.Errorf("ports %v, want %v", now, ports)
	}

	running := startProcess(t, node, c, takeOverArg)
	first.wantExit(t, exitTakenOver)
	running.wantSaid(t, "taken over from the agent before")
	wantReady(t, c)

	for _, declined := range [][]string{{"web-a-3f2a1"}, nil} {
		wantStartsAgain(t, node, c, running, declined)
		running = startProcess(t, node, c)
		wantReady(t, c)
		was := gateway
		if gateway = node.Link(t, c.Gateway.Name).Attrs().Index; gateway == was {
			t.Error("the gateway is the same: somebody still holds it")
		}
		running.wantSaid(t, "flow snapshot restored")
		if now := portsOpen(t, c); !slices.Equal(now, ports) {
			t.Errorf("ports %v, want %v", now, ports)
		}
	}
	running.Process.Signal(syscall.SIGTERM)
	running.wantExit(t, 0)
	wantNothingLeft(t, node, c)
}

// wantStartsAgain has an heir hang up when the agent has stopped. What the heir has
// declined is closed by then.
func wantStartsAgain(t *testing.T, node *nstest.Namespace, c *Config, running *process, declined []string) {
	t.Helper()
	e := heirOf(t, c)
	for _, link := range declined {
		door.CloseDescriptors(e.Take(DriverAFXDP, link))
	}
	if err := e.say(note{Say: sayReady, Declined: declined}); err != nil {
		t.Fatal(err)
	}
	n, _, err := e.hear(time.Minute, sayStopped)
	if err != nil || n.Still == 0 {
		t.Fatalf("%+v, %v", n, err)
	}
	x := node.Link(t, "web-a-3f2a1").Attrs().Xdp
	if open := x != nil && x.Attached; open != (declined == nil) {
		t.Errorf("declined %q, and the port on AF_XDP is open: %v", declined, open)
	}
	e.close()
	running.wantExit(t, exitAgain)
	e.arena.Close() // as when its process ends
}

// TestDeclined: what is no port on AF_XDP is declined, and opened later.
func TestDeclined(t *testing.T) {
	node := nstest.New(t)
	nstest.AddVeth(t, node, "web-a-3f2a1", nstest.New(t), "eth0")
	a := &Agent{config: &Config{}, estate: &estate{}}
	a.estate.Add(DriverAFXDP, "web-a-3f2a1", []int{})
	a.open = a.opener()
	a.open.Room(1)
	pods := newPodPorts([]Port{{Name: "web-a", Link: "web-a-3f2a1", Driver: DriverAFXDP}}, nil, a.openPod, slog.New(slog.DiscardHandler))
	node.Do(t, func() {
		if err := pods.inherit(a.estate.Has); err != nil || len(pods.have) != 0 {
			t.Errorf("%v, %v", err, pods.have)
		}
		p, err := a.openPod(pods.want[0])
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
	})
	if d := a.estate.Declined(); !slices.Equal(d, []string{"web-a-3f2a1"}) || a.estate.Begin() != nil {
		t.Errorf("declined %q", d)
	}
}

// TestTakeOverRefused: the agent that runs goes on, and the other says why it does
// not run.
func TestTakeOverRefused(t *testing.T) {
	node, c := upgradedNode(t)
	running := startProcess(t, node, c)
	wantReady(t, c)
	for want, change := range map[string]func(*Config){
		"its configuration has another Node": func(c *Config) { c.Peers = nil },
		"conntrack.max is 3000 here":         func(c *Config) { c.Conntrack.Max = 3000 },
		"the flow snapshot of the agent":     func(c *Config) { no := false; c.FlowSnapshot = &no },
	} {
		other := *c
		change(&other)
		refused := startProcess(t, node, &other, takeOverArg)
		refused.wantExit(t, exitFailed)
		refused.wantSaid(t, want)
		wantReady(t, c)
	}
	refused := startProcess(t, node, c) // without taking over
	refused.wantExit(t, exitFailed)
	refused.wantSaid(t, "an agent is running already")

	conn, err := net.Dial("unix", c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := door.Upgrade(conn, "/take-over", "antrail-hand-over/0", nil); err == nil || !strings.Contains(err.Error(), "426") || !strings.Contains(err.Error(), handOverProtocol) {
		t.Errorf("another protocol: %v", err)
	}
	if flows := askText(t, c, "/flows"); !strings.Contains(flows, "SpoofGuard") {
		t.Errorf("entries\n%s", flows)
	}
	startProcess(t, node, c, takeOverArg)
	running.wantExit(t, exitTakenOver)
}

// TestLeaves: what cannot take over from an agent may have it leave, and starts as
// after a kill.
func TestLeaves(t *testing.T) {
	node, c := upgradedNode(t)
	running := startProcess(t, node, c)
	wantReady(t, c)
	for _, change := range []func(*Config){
		func(c *Config) { c.Peers = nil },
		func(c *Config) { c.Conntrack.Max = 3000 },
		func(c *Config) { no := false; c.FlowSnapshot = &no },
	} {
		change(c)
		next := startProcess(t, node, c, orLeaveArg)
		running.wantExit(t, exitTakenOver)
		next.wantSaid(t, "the agent before has left")
		next.wantExit(t, exitAgain)
		next = startProcess(t, node, c)
		wantReady(t, c)
		if ports := portsOpen(t, c); !slices.Contains(ports, "36 client-a-1 afpacket") || !slices.Contains(ports, "37 web-a-3f2a1 afxdp") {
			t.Errorf("ports %v", ports)
		}
		running = next
	}
	running.Process.Signal(syscall.SIGTERM)
	running.wantExit(t, 0)
	wantNothingLeft(t, node, c)
}

// pairOfTalks is two ends of a talk.
func pairOfTalks(t *testing.T) (a, b talk) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	there, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here, err := ln.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	return talk{door.Talk{UnixConn: here}}, talk{door.Talk{UnixConn: there.(*net.UnixConn)}}
}

// TestTalkOfManySockets: a note brings the receiving sockets of a tunnel and of 184
// Egresses.
func TestTalkOfManySockets(t *testing.T) {
	a, b := pairOfTalks(t)
	fd, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	go a.say(note{Say: sayPort}, slices.Repeat([]int{fd}, 200)...)
	_, fds, err := b.hear(time.Minute, sayPort)
	door.CloseDescriptors(fds)
	if err != nil || len(fds) != 200 {
		t.Errorf("%d descriptors: %v", len(fds), err)
	}
}

// TestTalk: what is said is heard as it was said, with its descriptors and without
// those of the next note; a no, and what is no note, is an error.
func TestTalk(t *testing.T) {
	a, b := pairOfTalks(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	long := []string{strings.Repeat("learned ", 100_000)}
	go func() {
		a.say(note{Say: sayPort, Name: "p", Driver: DriverTap}, int(w.Fd()))
		a.say(note{Say: sayStopped, Still: 7, Learned: long})
		a.say(note{Say: sayNo, Why: "because"})
		a.say(note{Say: sayReady})
		a.Write([]byte{0xff, 0, 0, 0})
	}()
	n, fds, err := b.hear(time.Minute, sayPort)
	if err != nil || len(fds) != 1 || n.Name != "p" || n.Driver != DriverTap {
		t.Fatalf("%+v, %v, %v", n, fds, err)
	}
	w.Close()
	got := os.NewFile(uintptr(fds[0]), "w")
	if _, err := got.Write([]byte("hello")); err != nil {
		t.Error(err)
	}
	got.Close()
	if text, err := io.ReadAll(r); err != nil || !bytes.Equal(text, []byte("hello")) {
		t.Errorf("%q, %v: the descriptor leads elsewhere", text, err)
	}
	if n, fds, err = b.hear(time.Minute, sayStopped); err != nil || len(fds) != 0 || n.Still != 7 || !slices.Equal(n.Learned, long) {
		t.Errorf("%d, %v, %v", n.Still, fds, err)
	}
	for _, want := range []string{"because", `says "ready", and is expected to say`, "a message of"} {
		if _, _, err := b.hear(time.Minute, sayRunning); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	a.Close()
	if _, _, err := b.hear(time.Minute, sayRunning); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

// TestLearnedLines: what one switch has learned another learns, with its age.
func TestLearnedLines(t *testing.T) {
	c, _ := keptNode(t)
	a := liveAgent(t, c, slog.New(slog.DiscardHandler))
	defer closePipeline(t, a.pipeline)
	learn(t, a, affinityEntry, 100*time.Second)
	lines := learnedLines(a.sw)
	all, err := parseLearned(lines)
	if err != nil || len(all) != 1 || all[0].Age < 100*time.Second || all[0].Age > 200*time.Second || all[0].HardTimeout != 300 {
		t.Errorf("%v, %v of %q", all, err, lines)
	}
	for _, bad := range []string{"flow table=1 actions=drop", "learned", "learned 1s x table=1"} {
		if _, err := parseLearned([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestGate: one passes at a time, nobody after it was closed.
func TestGate(t *testing.T) {
	var none *gate
	if !none.pass() {
		t.Error("no gate keeps somebody out")
	}
	none.leave()
	g := &gate{}
	if !g.pass() {
		t.Fatal("a gate keeps the first out")
	}
	second := make(chan bool)
	go func() { second <- g.pass() }()
	select {
	case <-second:
		t.Error("two passed")
	case <-time.After(20 * time.Millisecond):
	}
	g.close()
	if <-second || g.pass() {
		t.Error("somebody passed a closed gate")
	}
}
