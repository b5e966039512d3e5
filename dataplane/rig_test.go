package dataplane_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
)

// rig is a switch on memory ports 1 to 4, with a tunnel port 9, whose clock the
// test turns.
type rig struct {
	testing.TB
	sw        *dataplane.Switch
	now       *int64
	conntrack *conntrack.Table
	ports     map[uint32]*memory.Port
	packetIns []*telemetry.PacketIn
	undone    packet.Offload // of the frames that sendFrame sends
	options   packet.TunnelOptions
	kernel    *trial // that forwards by itself; nil for none
}

const tunnelPort = 9

// tunnelled is a memory port that says it carries Frame.Tunnel.
type tunnelled struct{ *memory.Port }

func (p tunnelled) Info() ports.Info {
	info := p.Port.Info()
	info.Tunnel = true
	return info
}

// sent is a frame that left by a port.
type sent struct {
	port    uint32
	frame   []byte
	tunnel  packet.Tunnel
	offload packet.Offload
	mark    uint32 // not told
}

// newRig makes a rig with flow entries, one a line.
func newRig(t testing.TB, flows string) *rig {
	t.Helper()
	return newRigOf(t, parse.Sources{Flows: parse.Text("flows", flows)})
}

// newRigOf makes a rig with a whole program; without flows it has none.
func newRigOf(t testing.TB, src parse.Sources) *rig {
	t.Helper()
	r := &rig{TB: t, ports: map[uint32]*memory.Port{}}
	var p *flow.Program
	if src.Flows.Text != "" {
		p = r.parse(src)
	}
	r.sw, r.now, r.conntrack = newTrackingSwitch(t, p, func(pi *telemetry.PacketIn) { r.packetIns = append(r.packetIns, pi) })
	for no := uint32(1); no <= 4; no++ {
		r.addPort(no, memory.Options{})
	}
	r.ports[tunnelPort] = memory.New("tun", memory.Options{})
	r.check(r.sw.AddPort(tunnelPort, tunnelled{r.ports[tunnelPort]}))
	return r
}

// newRemembering makes a rig without a tunnel whose switch remembers what c says; both
// have the rig's clock.
func newRemembering(t testing.TB, flows string, ct conntrack.Config, c dataplane.Config) *rig {
	t.Helper()
	r := &rig{TB: t, ports: map[uint32]*memory.Port{}, now: new(int64)}
	*r.now = 1e12
	ct.Now = func() int64 { return *r.now }
	r.conntrack = conntrack.NewTable(ct)
	c.Conntrack, c.Clock = r.conntrack, ct.Now
	var err error
	r.sw, err = dataplane.New(c)
	r.check(err)
	t.Cleanup(func() { closeSwitch(t, r.sw) })
	r.check(r.sw.Apply(flow.BundleOf(r.program(flows))))
	for no := uint32(1); no <= 4; no++ {
		r.addPort(no, memory.Options{})
	}
	return r
}

func (r *rig) addPort(no uint32, o memory.Options) {
	r.Helper()
	r.ports[no] = memory.New(fmt.Sprintf("p%d", no), o)
	r.check(r.sw.AddPort(no, r.ports[no]))
}

// secure gives a port its security.
func (r *rig) secure(no uint32, s l2.PortSecurity) {
	r.Helper()
	r.check(r.sw.SecurePort(no, s))
}

func (r *rig) parse(src parse.Sources) *flow.Program {
	r.Helper()
	p, err := parse.Program(src)
	r.check(err)
	return p
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// compose is the frame of a packet in flow syntax, and the port it names. An IP packet
// has a TTL of 64 unless it says so.
func (r *rig) compose(text string) (uint32, []byte) {
	r.Helper()
	m, err := parse.Match(text, r.sw.Names())
	r.check(err)
	withTTL(&m)
	return m.Value.InPort(), flow.Compose(&m.Value)
}

// send gives the switch a packet in flow syntax and returns what left.
func (r *rig) send(text string) []sent {
	r.Helper()
	in, frame := r.compose(text)
	return r.sendFrame(in, frame)
}

// withTTL gives an IP packet whose description has no TTL one of 64.
func withTTL(m *flow.Match) {
	etherType, _ := m.Get(flow.EthType)
	_, said := m.Get(flow.IPTTL)
	if said.IsZero() && (etherType.Lo == packet.EtherTypeIPv4 || etherType.Lo == packet.EtherTypeIPv6) {
		m.AddExact(flow.IPTTL, flow.Value{Lo: 64})
	}
}

// sendFrame gives the switch a frame and returns what left, by port.
func (r *rig) sendFrame(in uint32, frame []byte) []sent {
	r.Helper()
	f := packet.FrameOf(frame)
	f.Offload, f.Tunnel.Options = r.undone, r.options
	return r.sendWhole(in, f)
}

// sendWhole gives the switch a frame with its offload state.
func (r *rig) sendWhole(in uint32, f *packet.Frame) []sent {
	r.Helper()
	if r.ports[in].Inject(f) == 0 {
		r.Fatal("the port takes no more frames")
	}
	r.sw.Poll()
	return r.collect()
}

// collect takes what the ports hold.
func (r *rig) collect() (out []sent) {
	for no := range uint32(64) {
		p, one := r.ports[no], make([]*packet.Frame, 1)
		for p != nil && p.Collect(one) == 1 {
			out = append(out, sent{no, bytes.Clone(one[0].Bytes()), one[0].Tunnel, one[0].Offload, 0})
			packet.Release(one)
		}
	}
	return out
}

// outcome sends a packet and says what became of it: the ports it left by and
// "agent" for a packet-in, or "drop REASON in TABLE".
func (r *rig) outcome(text string) string {
	r.Helper()
	in, frame := r.compose(text)
	return r.outcomeOf(in, frame)
}

func (r *rig) outcomeOf(in uint32, frame []byte) string {
	r.Helper()
	before, ins := r.drops(), len(r.packetIns)
	var words []string
	for _, s := range r.sendFrame(in, frame) {
		words = append(words, fmt.Sprint(s.port))
	}
	for range r.packetIns[ins:] {
		words = append(words, "agent")
	}
	for what, n := range r.drops() {
		if n != before[what] {
			words = append(words, what)
		}
	}
	return strings.Join(words, " ")
}

// drops counts dropped packets by "drop REASON in TABLE", and what no table of the
// dumps accounts for as "in none".
func (r *rig) drops() map[string]uint64 {
	all, total := map[string]uint64{}, r.sw.Drops()
	for _, t := range r.sw.Tables() {
		for reason, n := range t.DropsByReason {
			all[fmt.Sprintf("drop %s in %d", reason, t.ID)] = n
			total[reason] -= n
		}
	}
	for reason, n := range total {
		if n != 0 {
			all[fmt.Sprintf("drop %s in none", reason)] = n
		}
	}
	return all
}

// wantPorts fails unless exactly these ports sent one frame each.
func (r *rig) wantPorts(out []sent, want ...uint32) {
	r.Helper()
	var got []uint32
	for _, s := range out {
		got = append(got, s.port)
	}
	if !slices.Equal(got, want) {
		r.Fatalf("left by ports %v, want %v", got, want)
	}
}

// key reads the headers of a frame that left.
func (s sent) key() *flow.Key {
	f := packet.NewFrame(make([]byte, packet.Headroom+len(s.frame)), nil)
	f.SetBytes(s.frame)
	k := new(flow.Key)
	flow.Extract(f, 0, k)
	return k
}

// field is a header field of a frame that left, as text without its name.
func (s sent) field(id flow.FieldID) string {
	_, value, _ := strings.Cut(flow.FieldText(id, s.key(), nil), "=")
	return value
}

// warp turns the clock and lets what is old go.
func (r *rig) warp(d time.Duration) {
	*r.now += int64(d)
	r.sw.Expire()
}

// flows is the dump of entries, statistics left out.
func (r *rig) flows() (lines []string) {
	for _, f := range r.sw.Flows() {
		lines = append(lines, strings.TrimSpace(f.Entry.Text(flow.Format{Names: r.sw.Names()})))
	}
	return lines
}

// packets is the packets that the entries of a table took, by priority.
func (r *rig) packets(table uint8) map[uint16]uint64 {
	n := map[uint16]uint64{}
	for _, f := range r.sw.Flows() {
		if f.Table == table {
			n[f.Priority] += f.Packets
		}
	}
	return n
}

// program is flow entries as text, for a bundle.
func (r *rig) program(flows string) *flow.Program {
	r.Helper()
	return r.parse(parse.Sources{Flows: parse.Text("flows", flows)})
}

// sourcesOf is a program's texts.
func sourcesOf(flows, groups, meters string) parse.Sources {
	return parse.Sources{Flows: parse.Text("flows", flows), Groups: parse.Text("groups", groups), Meters: parse.Text("meters", meters)}
}
