package agent

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/nstest"
)

// uplinkNode is a Node of program uplink: its MAC addresses, and how packets leave.
const uplinkNode = `
nodeName: node-a
program: uplink
uplink: {mode: lab, egress: %s}
gateway: {mac: "00:15:5d:0a:00:01", addresses: [10.10.0.1/24]}
tunnel: {localAddress: 192.0.2.10}
podCIDRs: [10.10.0.0/24]
peers:
- {name: node-b, address: 192.0.2.1, podCIDRs: [10.10.1.0/24], gateways: [10.10.1.1]}
ports:
- {name: uplink, ofPort: 3, role: uplink, mac: %q}
- {name: br-int, ofPort: 4, role: bridge}
- {name: pod-a, ofPort: 5, mac: %q, address: 10.10.0.4}
`

// newUplinkWorld is a Node, a pod and an outside. As program uplink has it, the host's port has
// the address of the card, and its MAC address (W-02).
func newUplinkWorld(t *testing.T) programWorld {
	t.Helper()
	w := newProgramWorld(t)
	card := w.node.Link(t, "uplink").Attrs().HardwareAddr
	if err := w.node.Links().LinkSetHardwareAddr(w.node.Link(t, "host0"), card); err != nil {
		t.Fatal(err)
	}
	return w
}

// uplinkConfig is the Node's configuration with a way out.
func uplinkConfig(t *testing.T, w programWorld, egress string) *config.Config {
	t.Helper()
	if egress == config.EgressDirect {
		egress += fmt.Sprintf(", router: %q", w.outside.Link(t, "eth0").Attrs().HardwareAddr)
	}
	c, err := config.Parse(fmt.Appendf(nil, uplinkNode, egress, w.node.Link(t, "uplink").Attrs().HardwareAddr, w.pod.Link(t, "eth0").Attrs().HardwareAddr))
	if err != nil {
		t.Fatal(err)
	}
	c.Socket = filepath.Join(t.TempDir(), "agent.sock")
	return c
}

// stream is a connection between two namespaces.
type stream struct{ near, far net.Conn }

// talk sends a word both ways.
func (s *stream) talk(t *testing.T, word string) {
	t.Helper()
	s.send(t, word)
	s.receive(t, word)
	back := stream{s.far, s.near}
	back.send(t, word)
	back.receive(t, word)
}

func (s *stream) send(t *testing.T, word string) {
	t.Helper()
	if _, err := io.WriteString(s.near, word); err != nil {
		t.Fatal(err)
	}
}

func (s *stream) receive(t *testing.T, word string) {
	t.Helper()
	s.far.SetDeadline(time.Now().Add(10 * time.Second))
	got := make([]byte, len(word))
	if _, err := io.ReadFull(s.far, got); err != nil || string(got) != word {
		t.Fatalf("a stream: %q in place of %q: %v", got, word, err)
	}
}

// carry sends so many words of 4 kB both ways, and receives each.
func (s *stream) carry(words int) error {
	word := bytes.Repeat([]byte("word"), 1<<10)
	for i := range words {
		for _, way := range [][2]net.Conn{{s.near, s.far}, {s.far, s.near}} {
			way[0].SetDeadline(time.Now().Add(10 * time.Second))
			way[1].SetDeadline(time.Now().Add(10 * time.Second))
			got := make([]byte, len(word))
			_, err := way[0].Write(word)
			if err == nil {
				_, err = io.ReadFull(way[1], got)
			}
			if err != nil || !bytes.Equal(got, word) {
				return fmt.Errorf("word %d of a stream: %v", i, err)
			}
		}
	}
	return nil
}

// besidePods has a stream of the host carry 8 MB each way, while a pod begins 50 connections to
// the outside (A-W4).
func besidePods(t *testing.T, hosts *stream, w programWorld) {
	t.Helper()
	carried := make(chan error, 1)
	go func() { carried <- hosts.carry(2000) }()
	for range 50 {
		wantSNAT(t, exchange(t, w.pod, w.outside, "192.0.2.1:8080"))
	}
	if err := <-carried; err != nil {
		t.Error(err)
	}
}

// openStream connects one namespace to an address in another.
func openStream(t *testing.T, from, to *nstest.Namespace, addr string) *stream {
	t.Helper()
	var l net.Listener
	var err error
	to.Do(t, func() { l, err = net.Listen("tcp", addr) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var s stream
	from.Do(t, func() { s.near, err = net.DialTimeout("tcp", addr, 10*time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	if s.far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.near.Close(); s.far.Close() })
	return &s
}

// TestAgentRunsUplink is A-W2 to A-W4 with real sockets by program uplink: a pod reaches the
// outside with the Node's address by TCP and UDP, in both modes, while a stream of the host goes
// on. In loop mode the gateway carries it, in direct mode it does not.
func TestAgentRunsUplink(t *testing.T) {
	for _, egress := range []string{config.EgressLoop, config.EgressDirect} {
		t.Run(egress, func(t *testing.T) {
			w := newUplinkWorld(t)
			c := uplinkConfig(t, w, egress)
			p := startProcess(t, w.node, c)
			wantReady(t, c)
			hosts := openStream(t, w.node, w.outside, "192.0.2.1:9000")
			hosts.talk(t, "before")
			wantSNAT(t, exchange(t, w.pod, w.outside, "192.0.2.1:8080"))
			wantSNAT(t, datagram(t, w.pod, w.outside, "192.0.2.1:8053"))
			wantWayOut(t, c)
			besidePods(t, hosts, w)
			if seen := exchange(t, w.outside, w.node, "192.0.2.10:8082"); seen.Addr().String() != "192.0.2.1" {
				t.Errorf("the host saw the outside as %v", seen)
			}
			if seen := exchange(t, w.node, w.pod, "10.10.0.4:8083"); seen.Addr().String() != "10.10.0.1" {
				t.Errorf("the pod saw the host as %v", seen)
			}
			if text := askText(t, c, "/conntrack"); !strings.Contains(text, "mark=256") && !strings.Contains(text, "mark=0x100") {
				t.Errorf("no connection has the mark:\n%s", text)
			}
			p.stop(t)
		})
	}
}

// wantWayOut checks that packets to the outside have left by the gateway in loop mode, and by
// the card in direct mode.
func wantWayOut(t *testing.T, c *config.Config) {
	t.Helper()
	text, err := api.NewClient(c.Socket).Get(t.Context(), "/flows", url.Values{"names": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	port := map[string]string{config.EgressLoop: "output:antrea-gw0", config.EgressDirect: "output:" + c.PortOf(config.RoleUplink).Name}[c.Uplink.Egress]
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "priority=205") && strings.Contains(line, "0x20000") && strings.Contains(strings.ReplaceAll(line, `"`, ""), port) && !strings.Contains(line, "n_packets=0,") {
			return
		}
	}
	t.Errorf("nothing left by %s:\n%s", port, text)
}

// wantSNAT checks who the outside saw.
func wantSNAT(t *testing.T, seen netip.AddrPort) {
	t.Helper()
	if seen.Addr().String() != "192.0.2.10" || seen.Port() < 10000 || seen.Port() > 20000 {
		t.Errorf("the outside saw %v", seen)
	}
}

// datagram sends a word by UDP, gets it back, and returns who the listener saw.
func datagram(t *testing.T, from, to *nstest.Namespace, addr string) netip.AddrPort {
	t.Helper()
	end := netip.MustParseAddrPort(addr)
	var l *net.UDPConn
	var c net.Conn
	var err error
	to.Do(t, func() { l, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(end)) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	from.Do(t, func() { c, err = net.Dial("udp4", addr) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	deadline := time.Now().Add(10 * time.Second)
	l.SetDeadline(deadline)
	c.SetDeadline(deadline)
	if _, err := c.Write([]byte("word")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	n, seen, err := l.ReadFromUDPAddrPort(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.WriteToUDPAddrPort(b[:n], seen); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(b); err != nil || string(b[:n]) != "word" {
		t.Fatalf("%q came back: %v", b[:n], err)
	}
	return seen
}

// TestUplinkTunnel: packets to pods of another Node are in datagrams that have the host's
// address, and leave by the card (W-05). The agent loads entries, then opens ports, then lets the
// Node send (W-06).
func TestUplinkTunnel(t *testing.T) {
	w := newUplinkWorld(t)
	c := uplinkConfig(t, w, config.EgressDirect)
	var l *net.UDPConn
	var err error
	w.outside.Do(t, func() {
		l, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 6081})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := startProcess(t, w.node, c)
	wantReady(t, c)
	var pod net.Conn
	w.pod.Do(t, func() { pod, err = net.Dial("udp4", "10.10.1.7:53") })
	if err != nil {
		t.Fatal(err)
	}
	defer pod.Close()
	if _, err := pod.Write([]byte("to another Node")); err != nil {
		t.Fatal(err)
	}
	l.SetReadDeadline(time.Now().Add(10 * time.Second))
	b := make([]byte, 2000)
	n, from, err := l.ReadFromUDPAddrPort(b)
	if err != nil || from.Addr().String() != "192.0.2.10" || !strings.HasSuffix(string(b[:n]), "to another Node") {
		t.Errorf("the other Node got %q of %v: %v", b[:n], from, err)
	}
	said := p.said.String()
	loaded, first, last := strings.Index(said, "pipeline loaded"), strings.Index(said, "port added"), strings.LastIndex(said, "port added")
	if ready := strings.Index(said, "msg=ready"); loaded < 0 || loaded > first || last > ready {
		t.Error("entries, ports and the Node's side came in another order")
	}
	p.stop(t)
}

// TestUplinkLoopNeedsSysctls is A-W10: if the kernel would drop the Node's own address as a
// source, or would give the ports of pods to its own sockets, the agent refuses loop mode and
// names the sysctl.
func TestUplinkLoopNeedsSysctls(t *testing.T) {
	for _, s := range []struct{ sysctl, value, want string }{
		{"net/ipv4/conf/all/accept_local", "0", "net.ipv4.conf.antrea-gw0.accept_local is 0"},
		{"net/ipv4/ip_local_port_range", "15000 40000", "net.ipv4.ip_local_reserved_ports=10000-20000"},
	} {
		w := newUplinkWorld(t)
		w.node.Sysctl(t, s.sysctl, s.value)
		p := startProcess(t, w.node, uplinkConfig(t, w, config.EgressLoop))
		p.wantExit(t, exitFailed)
		if said := p.said.String(); !strings.Contains(said, "uplink.egress: loop: ") || !strings.Contains(said, s.want) {
			t.Errorf("with %s=%s the agent does not say %q:\n%s", s.sysctl, s.value, s.want, said)
		}
	}
}
