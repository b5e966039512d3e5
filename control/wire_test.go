package control

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/tables"
)

// Tests by packets: the Node of the stories with the switch itself and ports in memory. A packet is written
//
//	client-a syn 10.10.0.12:1000 > 10.96.0.10:80
//
// with the port that it enters or leaves by. A packet to another Node leaves by tunnel(ADDRESS OF THE NODE). A tagged packet has
// vlan:ID. A packet-in goes to the agent.

// wirePorts are the ports of the stories' Node, with their link addresses.
var wirePorts = map[string]struct {
	no  uint32
	mac string
}{
	"tunnel":   {1, "0a:00:00:00:01:01"},
	"gateway":  {2, "0a:00:00:00:00:02"},
	"web-a":    {11, "0a:00:00:00:00:0b"},
	"client-a": {12, "0a:00:00:00:00:0c"},
	"spare":    {13, "0a:00:00:00:00:0d"},
	"tap0":     {21, "0a:00:00:00:00:15"},
	"tap1":     {22, "0a:00:00:00:00:16"},
}

const globalVirtualMAC = "aa:bb:cc:dd:ee:ff"

// wire is that Node.
type wire struct {
	*telling
	sw    *realSwitch
	ports map[string]*memory.Port
	// around is called around every change of the switch, with the event.
	around func(event string)
	bundle int // number of changes
	// fail, if not nil, reports whether the switch refuses the next change.
	fail func() bool
}

// newWire starts with node.yaml and more.
func newWire(t *testing.T, yaml string) *wire {
	t.Helper()
	w := &wire{sw: newRealSwitch(t), ports: map[string]*memory.Port{}}
	for _, name := range slices.Sorted(maps.Keys(wirePorts)) {
		w.ports[name] = memory.New(name, memory.Options{Tunnel: name == "tunnel"})
		if err := w.sw.AddPort(wirePorts[name].no, w.ports[name]); err != nil {
			t.Fatal(err)
		}
	}
	w.telling = newTelling(t, released(t, readManifest(t, "testdata/stories/node.yaml")), func(ledger.Installer) ledger.Installer { return w })
	w.has = w.sw.Program
	if yaml != "" {
		w.put(yaml)
	}
	return w
}

// put applies objects.
func (w *wire) put(yaml string) {
	w.t.Helper()
	w.change(released(w.t, decodeAll(w.t, yaml)), nil)
}

// releaseVariable is the environment variable with the Antrea release of wires.
const releaseVariable = "ANTRAIL_TEST_PIPELINE"

// released sets the release of releaseVariable in NodeConfigs.
func released(t *testing.T, objects []cluster.Object) []cluster.Object {
	t.Helper()
	r, err := tables.ParseRelease(os.Getenv(releaseVariable))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if nc, ok := o.(*cluster.NodeConfig); ok {
			nc.Release = r
		}
	}
	return objects
}

// Apply implements Installer. It calls around before and after each bundle.
func (w *wire) Apply(b *flow.Bundle) error {
	w.look("before a bundle")
	if w.fail != nil && w.fail() {
		return errInjected
	}
	err := w.sw.Apply(b)
	w.bundle++
	w.look("after a bundle")
	return err
}

// Purge implements Installer.
func (w *wire) Purge(all []ledger.Purge) {
	w.sw.Purge(all)
	w.look("after a purge")
}

func (w *wire) look(event string) {
	if w.around != nil {
		w.around(event)
	}
}

// later advances the switch's clock.
func (w *wire) later(seconds int64) {
	w.sw.now += seconds * 1e9
	w.sw.Expire()
}

// kinds maps the words for packets to matches.
var kinds = map[string]string{
	"syn": "tcp,tcp_flags=+syn", "synack": "tcp,tcp_flags=+syn+ack", "ack": "tcp,tcp_flags=+ack",
	"fin": "tcp,tcp_flags=+fin+ack", "udp": "udp", "sctp": "sctp",
}

// send injects a packet, and returns the packets that leave, sorted.
func (w *wire) send(text string) []string {
	w.t.Helper()
	port, rest, _ := strings.Cut(text, " ")
	w.inject(port, w.frame(port, rest))
	w.sw.Poll()
	return w.collect()
}

// expect injects a packet and compares the packets that leave.
func (w *wire) expect(text string, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	if got := w.send(text); !slices.Equal(got, want) {
		w.t.Errorf("%s\n     left %q\n     want %q", text, got, want)
	}
}

// frame builds the packet that a text describes.
func (w *wire) frame(port, text string) []byte {
	w.t.Helper()
	words := strings.Fields(text)
	tag, tagged := strings.CutPrefix(words[0], "vlan:")
	if tagged {
		words = words[1:]
	}
	src, dst := netip.MustParseAddrPort(words[1]), netip.MustParseAddrPort(words[3])
	m, err := parse.Match(fmt.Sprintf("%s,dl_src=%s,dl_dst=%s,nw_src=%s,nw_dst=%s,tp_src=%d,tp_dst=%d,nw_ttl=64",
		kinds[words[0]], wirePorts[port].mac, linkTo(port, dst.Addr()), src.Addr(), dst.Addr(), src.Port(), dst.Port()), nil)
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	b := flow.Compose(&m.Value)
	if !tagged {
		return b
	}
	id, err := strconv.ParseUint(tag, 10, 12)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.Concat(b[:12], []byte{0x81, 0, byte(id >> 8), byte(id)}, b[12:])
}

// outside matches packets whose next hop is the underlay's router.
var outside = netip.MustParsePrefix("198.51.100.0/24")

// linkTo is the link address of the next hop. Pods reach each other themselves, Nodes and the Node's own network through the
// virtual router, and everything else through the gateway.
func linkTo(from string, to netip.Addr) string {
	pods := map[string]string{
		"10.10.0.11": "web-a", "10.10.0.12": "client-a", "10.10.0.13": "spare",
		"192.168.1.50": "client-a", "192.168.1.51": "spare", "192.168.1.1": "tap1", // of the underlay
	}
	switch name, here := pods[to.String()]; {
	case from == "tunnel":
		return globalVirtualMAC
	case here:
		return wirePorts[name].mac
	case from == "gateway":
		return globalVirtualMAC
	case from == "tap0", outside.Contains(to):
		return "0a:00:00:00:00:99" // the underlay's router
	}
	return wirePorts["gateway"].mac
}

func (w *wire) inject(port string, frame []byte) {
	w.t.Helper()
	f := packet.FrameOf(frame)
	if port == "tunnel" {
		f.Tunnel = packet.Tunnel{Src: netip.MustParseAddr("192.168.1.2"), Dst: netip.MustParseAddr("192.168.1.1")}
	}
	if w.ports[port].Inject(f) != 1 {
		w.t.Fatalf("%s accepts no frame", port)
	}
}

// collect returns the packets that left since its last call.
func (w *wire) collect() (all []string) {
	one := make([]*packet.Frame, 1)
	for name, p := range w.ports {
		for p.Collect(one) == 1 {
			at := name
			if name == "tunnel" {
				at = fmt.Sprintf("tunnel(%s)", one[0].Tunnel.Dst)
			}
			all = append(all, at+" "+frameText(one[0].Bytes()))
			packet.Release(one)
		}
	}
	for _, pi := range w.sw.packetIns {
		all = append(all, "agent "+frameText(pi.Frame))
	}
	w.sw.packetIns = nil
	slices.Sort(all)
	return all
}

// frameText describes a packet in the form that send reads.
func frameText(b []byte) string {
	tag := ""
	if binary.BigEndian.Uint16(b[12:]) == 0x8100 {
		tag = fmt.Sprintf("vlan:%d ", binary.BigEndian.Uint16(b[14:])&0xfff)
		b = append(slices.Clone(b[:12]), b[16:]...)
	}
	l := packet.ParseLayers(b)
	ip, l4 := packet.IPv4(b[l.L3:]), b[l.L4:]
	return fmt.Sprintf("%s%s %s:%d > %s:%d", tag, kindOf(l.Proto, l4),
		ip.Src(), binary.BigEndian.Uint16(l4), ip.Dst(), binary.BigEndian.Uint16(l4[2:]))
}

func kindOf(proto uint8, l4 []byte) string {
	switch proto {
	case packet.ProtoUDP:
		return "udp"
	case packet.ProtoSCTP:
		return "sctp"
	case packet.ProtoTCP:
		return map[byte]string{2: "syn", 0x12: "synack", 0x10: "ack", 0x11: "fin"}[l4[13]]
	}
	return fmt.Sprintf("proto-%d", proto)
}

// expectOneOf injects a packet that must leave in one of several ways, and returns which.
func (w *wire) expectOneOf(text string, want ...string) string {
	w.t.Helper()
	got := w.send(text)
	if len(got) != 1 || !slices.Contains(want, got[0]) {
		w.t.Fatalf("%s\n     left %q\n     want one of %q", text, got, want)
	}
	return got[0]
}
