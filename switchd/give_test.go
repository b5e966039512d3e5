package switchd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/confinetest"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/porttest"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { confinetest.Main(m) }

// insideSwitch is the confined switch of the tests below, which end it with a signal.
func insideSwitch(t *testing.T) {
	t.Helper()
	ln, err := net.FileListener(os.NewFile(3, "door"))
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{Dir: ".", Listener: ln, Confined: true, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	p.Settings.Workers = 1
	p.Settings.Owner = "antrail-give-test"
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// giving is a confined switch, and the namespace of its Node.
type giving struct {
	node   *nstest.Namespace
	socket string // of the door
	client *door.Client
	pid    int
}

func newGiving(t *testing.T) *giving {
	t.Helper()
	return newGivingIn(t, nstest.New(t))
}

func newGivingIn(t *testing.T, node *nstest.Namespace) *giving {
	t.Helper()
	g := &giving{node: node}
	g.socket = filepath.Join(t.TempDir(), "switch.sock")
	ln, err := Listen(g.socket)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ln.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	confinetest.Start(t, g.node, "TestGivePort", []int{fd})
	g.client = door.Dial(g.socket)
	info, err := g.client.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if g.pid = info.PID; !info.Confined || info.OffloadOff == "" {
		t.Fatalf("the switch says %+v", info)
	}
	return g
}

// open is the number of descriptors that the switch keeps open, without its door and its files.
// It waits until the number is stable, because a request to the kernel, a connection to the door
// and the file of entries are open only for a moment.
func (g *giving) open(t *testing.T) int {
	t.Helper()
	n := g.openNow(t)
	for same := 0; same < 25; time.Sleep(2 * time.Millisecond) {
		now := g.openNow(t)
		if same++; now != n {
			n, same = now, 0
		}
	}
	return n
}

// openNow is the number of descriptors open now.
func (g *giving) openNow(t *testing.T) int {
	t.Helper()
	door := g.doorSockets(t)
	dir := fmt.Sprintf("/proc/%d/fd", g.pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(slices.DeleteFunc(all, func(fd os.DirEntry) bool {
		to, err := os.Readlink(filepath.Join(dir, fd.Name()))
		file := strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "/memfd:")
		return err != nil || file || door[to] // closed since the listing, or not of a port
	}))
}

// doorSockets are the sockets of the door, the listening and the accepted ones, as
// /proc/PID/fd names them.
func (g *giving) doorSockets(t *testing.T) map[string]bool {
	t.Helper()
	all, err := os.ReadFile("/proc/thread-self/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	sockets := map[string]bool{}
	for line := range strings.Lines(string(all)) {
		if f := strings.Fields(line); len(f) == 8 && f[7] == g.socket {
			sockets["socket:["+f[6]+"]"] = true
		}
	}
	return sockets
}

// wantOpen waits until the switch has a number of descriptors.
func (g *giving) wantOpen(t *testing.T, want int, after string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); g.openNow(t) != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: the switch has %d descriptors, want %d", after, g.openNow(t), want)
		}
	}
}

var (
	tapSpec    = door.PortSpec{No: 2, Name: "gw0", Link: "gw0", Driver: door.DriverTap, Tap: &door.TapSpec{MTU: 1500}}
	packetSpec = door.PortSpec{No: 3, Name: "pod", Link: "sw0", Driver: door.DriverAuto}
	xdpSpec    = door.PortSpec{No: 4, Name: "pod2", Link: "sw1", Driver: door.DriverAFXDP}
	tunnelSpec = door.PortSpec{No: 1, Name: "tun0", Driver: door.DriverTunnel, Tunnel: &door.TunnelSpec{
		Kind: "geneve", Local: netip.MustParseAddr("127.0.0.1"), MTU: 1450, Driver: door.DriverAuto,
	}}
)

func (g *giving) giver() *Giver { return &Giver{Switch: g.client, Log: slog.Default()} }

// givenSpecs are of ports of each driver.
var givenSpecs = []door.PortSpec{tapSpec, packetSpec, xdpSpec, tunnelSpec}

// heritable opens these ports in the Node, for a switch that may not.
func (g *giving) heritable(t *testing.T) map[string]ports.Heritable {
	t.Helper()
	nstest.AddVeth(t, g.node, "sw0", nstest.New(t), "eth0")
	nstest.AddVeth(t, g.node, "sw1", nstest.New(t), "eth0")
	all := map[string]ports.Heritable{}
	for _, spec := range givenSpecs {
		g.node.Do(t, func() {
			p, err := g.giver().Open(&spec)
			if err != nil {
				t.Fatal(err)
			}
			all[spec.Name] = p
		})
	}
	for _, p := range all {
		p.Rest()
		t.Cleanup(func() { p.Close() })
	}
	return all
}

// TestGivePort: a confined switch opens no port by name. It takes a tap, a packet socket, a port
// on AF_XDP and a tunnel with their descriptors. It keeps them when they are requested again, and
// closes them when they are removed.
func TestGivePort(t *testing.T) {
	if confinetest.Inside() {
		insideSwitch(t)
		return
	}
	g := newGiving(t)
	all := g.heritable(t)
	before := g.open(t)
	for _, spec := range givenSpecs {
		if err := g.client.OpenPort(&spec); err != door.ErrConfined {
			t.Errorf("%s by name: %v", spec.Name, err)
		}
		if err := g.client.GivePort(&spec, all[spec.Name].Descriptors()); err != nil {
			t.Fatalf("%s: %v", spec.Name, err)
		}
	}
	for _, p := range all {
		p.Close()
	}
	up := map[uint32]string{}
	for _, p := range g.client.Ports() {
		if p.Up {
			up[p.No] = p.Driver
		}
	}
	if want := (map[uint32]string{1: "underlay", 2: "tap", 3: "afpacket", 4: "afxdp"}); fmt.Sprint(up) != fmt.Sprint(want) {
		t.Errorf("ports %v, want %v", up, want)
	}
	with := g.open(t)
	for _, spec := range givenSpecs {
		if err := g.client.OpenPort(&spec); err != nil {
			t.Errorf("%s, which is there: %v", spec.Name, err)
		}
	}
	g.wantOpen(t, with, "ports that are there")
	g.egresses(t, "geneve", with)
	for no := range up {
		if err := g.client.RemovePort(no); err != nil {
			t.Error(err)
		}
	}
	g.wantOpen(t, before, "no port is left")
}

// TestPortsOutliveAKill: a switch that is killed has lent a packet socket, a tap, a port on
// AF_XDP and a tunnel. The next one continues with them. Frames that arrived meanwhile are still
// there.
func TestPortsOutliveAKill(t *testing.T) {
	g, pod := newGiving(t), nstest.New(t)
	nstest.AddVeth(t, g.node, "sw0", pod, "eth0")
	nstest.AddVeth(t, g.node, "sw1", nstest.New(t), "eth0")
	wire := nstest.OpenWire(t, pod, "eth0")
	for _, spec := range givenSpecs {
		g.node.Do(t, func() {
			if err := g.giver().OpenIn(&spec); err != nil {
				t.Fatalf("%s: %v", spec.Name, err)
			}
		})
	}
	lent := map[string][]int{}
	for _, spec := range givenSpecs {
		why, fds, err := g.client.LendPort(spec.No)
		if err != nil || len(fds) == 0 || why == "" {
			t.Fatalf("%s: %d descriptors, why %q, error %v", spec.Name, len(fds), why, err)
		}
		lent[spec.Name] = fds
		t.Cleanup(func() { door.CloseDescriptors(fds) })
	}
	if _, fds, err := g.client.LendPort(99); err != nil || len(fds) > 0 {
		t.Errorf("no port: %d descriptors, error %v", len(fds), err)
	}
	if err := unix.Kill(g.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	nstest.Until(t, "the switch to end", func() bool { _, err := g.client.Info(t.Context()); return err != nil })
	if err := wire.Send(make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	next := newGivingIn(t, g.node)
	other := packetSpec
	other.Link = "sw1"
	next.node.Do(t, func() {
		if err := next.giver().Again(&other, lent["pod"]); err == nil || !strings.Contains(err.Error(), "of another interface") {
			t.Errorf("another port's socket: %v", err)
		}
		for _, spec := range givenSpecs {
			if err := next.giver().Again(&spec, lent[spec.Name]); err != nil {
				t.Errorf("%s: %v", spec.Name, err)
			}
		}
	})
	up := 0
	for _, p := range next.client.Ports() {
		if p.Up {
			up++
		}
	}
	if up != 4 {
		t.Errorf("%d ports are up: %+v", up, next.client.Ports())
	}
	nstest.Until(t, "the frame that waited", func() bool {
		for _, p := range next.client.Ports() {
			if p.No == packetSpec.No && p.RxPackets == 1 {
				return true
			}
		}
		return false
	})
}

// TestGiveTunnels: a confined switch takes a tunnel of each kind, by the Node's stack or on
// a card, and closes all of it.
func TestGiveTunnels(t *testing.T) {
	g := newGiving(t)
	nstest.AddVeth(t, g.node, "card", nstest.New(t), "card")
	g.node.AddAddress(t, "card", "192.168.77.101/24")
	before := g.open(t)
	for _, kind := range []string{"geneve", "vxlan", "gre"} {
		for driver, want := range map[string]string{door.DriverKernel: door.DriverUnderlay, door.DriverAFXDP: door.DriverUplink, door.DriverAuto: door.DriverUplink} {
			spec := door.PortSpec{No: 1, Name: "tun0", Driver: door.DriverTunnel, Tunnel: &door.TunnelSpec{
				Kind: kind, Local: netip.MustParseAddr("192.168.77.101"), MTU: 1400, Driver: driver,
			}}
			g.node.Do(t, func() {
				p, err := g.giver().Open(&spec)
				if err == nil {
					err = errors.Join(g.client.GivePort(&spec, p.Descriptors()), CloseTaken(p))
				}
				if err != nil {
					t.Fatalf("%s, %s: %v", kind, driver, err)
				}
			})
			if all := g.client.Ports(); len(all) != 1 || all[0].Driver != want || !all[0].Up {
				t.Errorf("%s, %s: ports %+v", kind, driver, all)
			}
			with := g.open(t)
			if err := g.client.OpenPort(&spec); err != nil {
				t.Errorf("%s, %s, which is there: %v", kind, driver, err)
			}
			g.wantOpen(t, with, "a port that is there")
			g.egresses(t, kind, with)
			if err := g.client.RemovePort(1); err != nil {
				t.Error(err)
			}
			g.wantOpen(t, before, fmt.Sprintf("%s, %s: no port is left", kind, driver))
			nstest.Until(t, "the program to go", func() bool {
				xdp := g.node.Link(t, "card").Attrs().Xdp
				return xdp == nil || !xdp.Attached
			})
		}
	}
}

// egresses: the switch receives at addresses of Egresses by the sockets it gets, one each, and
// closes the others. before is its earlier number of descriptors.
func (g *giving) egresses(t *testing.T, kind string, before int) {
	t.Helper()
	one, two := netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")
	for _, here := range [][]netip.Addr{{one}, {one, two}, {two}, {}} {
		g.node.Do(t, func() {
			if err := SetEgresses(g.client, kind, &door.TunnelEgresses{Here: here}); err != nil {
				t.Error(err)
			}
		})
		g.wantOpen(t, before+len(here), fmt.Sprintf("Egresses %v", here))
	}
	if kind != "geneve" {
		return // the port below, 6081, is Geneve's
	}
	var other net.PacketConn
	g.node.Do(t, func() {
		var err error
		if other, err = net.ListenPacket("udp", netip.AddrPortFrom(one, 6081).String()); err != nil {
			t.Fatal(err)
		}
	})
	g.node.Do(t, func() {
		err := SetEgresses(g.client, kind, &door.TunnelEgresses{Here: []netip.Addr{one, two}})
		if err == nil || !strings.Contains(err.Error(), "has given no socket") || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("somebody else receives at an address: %v", err)
		}
	})
	g.wantOpen(t, before+1, "an address is taken")
	other.Close()
	g.node.Do(t, func() {
		if err := SetEgresses(g.client, kind, &door.TunnelEgresses{}); err != nil {
			t.Error(err)
		}
	})
}

// TestGivePortRefusals: if a port cannot be made, the caller gets an error, and the switch keeps
// no descriptor of it.
func TestGivePortRefusals(t *testing.T) {
	g := newGiving(t)
	all := g.heritable(t)
	socket, device, tunnel := all["pod"].Descriptors(), all["gw0"].Descriptors(), all["tun0"].Descriptors()
	pipe := make([]int, 2)
	if err := unix.Pipe2(pipe, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer door.CloseDescriptors(pipe)
	card := packetSpec
	card.Driver = door.DriverAFXDP
	before := g.open(t)
	for _, c := range []struct {
		want string
		spec door.PortSpec
		fds  []int
	}{
		{"0 descriptors, want a socket", packetSpec, nil},
		{"2 descriptors, want a socket", packetSpec, append(socket, device...)},
		{"no packet socket", packetSpec, tunnel[:1]},
		{"packet socket", packetSpec, pipe[:1]},
		{"0 descriptors, want 1", tapSpec, nil},
		{"no link of a program", tapSpec, append(device, device...)},
		{"no device", tapSpec, socket},
		{"no device", tapSpec, pipe[:1]},
		{"there is no receiving socket", tunnelSpec, nil},
		{"it is no socket of IP", tunnelSpec, append(tunnel, socket...)},
		{"it is no socket of IP", tunnelSpec, pipe},
		{"1 descriptors, want 5", card, socket},
		{"to send by: 2 sockets, want 3 or more", tunnelSpec, tunnel[:len(tunnel)-256]},
		{"to send by: 0 sockets", tunnelSpec, tunnel[:16]},
		{"it names no link", door.PortSpec{No: 9, Name: "x", Driver: door.DriverAuto}, socket},
	} {
		if err := g.client.GivePort(&c.spec, c.fds); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %d descriptors: %v, want %q", c.spec.Name, len(c.fds), err, c.want)
		}
		g.wantOpen(t, before, c.want)
	}
	if all := g.client.Ports(); len(all) != 0 {
		t.Errorf("ports %+v", all)
	}
}

// TestGiveCutMessages: a message that ends early, or is not valid, leaves nothing open.
func TestGiveCutMessages(t *testing.T) {
	g := newGiving(t)
	fds := g.heritable(t)["gw0"].Descriptors()
	before := g.open(t)
	for name, b := range map[string][]byte{
		"nothing": {}, "half a length": {0, 0}, "half a message": {0, 0, 0, 9, '{'}, "too long": {255, 0, 0, 0},
		"no JSON": {0, 0, 0, 1, '{'}, "an unknown field": append([]byte{0, 0, 0, 7}, `{"x":1}`...),
	} {
		conn, err := net.Dial("unix", g.client.Socket())
		if err != nil {
			t.Fatal(err)
		}
		if err := door.Upgrade(conn, "/v1/ports/2/give", "antrail-port/1", nil); err != nil {
			t.Fatal(err)
		}
		u := conn.(*net.UnixConn)
		if len(b) > 0 {
			_, _, err = u.WriteMsgUnix(b, unix.UnixRights(porttest.Copies(t, fds)...), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		u.CloseWrite()
		var answer door.Given
		if _, err := (door.MessageConn{UnixConn: u}).Receive(&answer); err != nil || !strings.Contains(answer.Error, "port 2") {
			t.Errorf("%s: answer %+v, %v", name, answer, err)
		}
		t.Logf("%s: %s", name, answer.Error)
		conn.Close()
		g.wantOpen(t, before, name)
	}
	for _, path := range []string{"/v1/ports/2/give", "/v1/ports/x/give"} {
		conn, err := net.Dial("unix", g.client.Socket())
		if err != nil {
			t.Fatal(err)
		}
		if err := door.Upgrade(conn, path, "antrail-port/0", nil); err == nil {
			t.Errorf("%s: another protocol is spoken", path)
		}
		conn.Close()
	}
}
