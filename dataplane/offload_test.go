package dataplane_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/ports/offload"
	"github.com/antrail/antrail/tunnel"
)

// trial is the kernel's programs for a switch on memory ports: what they would
// have received is tried before the switch gets it.
type trial struct {
	kernel *offload.Kernel
	run    *offload.Trial
	taken  int

	kind               tunnel.Kind
	over6              bool            // the tunnel goes over IPv6
	tunnels            map[uint32]bool // ports
	wrapped, unwrapped int             // of those taken
	stacks             map[uint32]bool // ports to the Node's stack
	into, outOf        int             // of those taken, into the stack and out of it
}

// newTrial loads the programs. It skips the test when the process is not root.
func newTrial(t testing.TB) *trial {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loading programs into the kernel needs root")
	}
	k, err := offload.Open(64)
	if err != nil {
		t.Fatal(err)
	}
	run, err := k.NewTrial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return &trial{kernel: k, run: run, tunnels: map[uint32]bool{}, stacks: map[uint32]bool{}}
}

func (k *trial) offloader() ports.Offload {
	if k == nil {
		return nil
	}
	return k.kernel
}

// receive is what the kernel does with a frame that a port would get; ok is false
// for one that the port gets. A trial knows nothing of undone work, nor of frames that are shorter than any that an offload entry is for. A
// wrong transport checksum is the receiver's to find where the kernel forwards,
// the one thing that differs.
func (k *trial) receive(t testing.TB, o offer) (out offer, ok bool) {
	t.Helper()
	if k == nil || !o.offload.None() || len(o.frame) < 42 || !transportSound(o.frame) {
		return offer{}, false
	}
	receive, frame, tunnelled := k.run.Received, o.frame, k.tunnels[o.port]
	if tunnelled != (o.tunnel != packet.Tunnel{}) || tunnelled && !(o.tunnel.Src.IsValid() && o.tunnel.Dst.IsValid()) {
		return offer{}, false
	}
	if tunnelled {
		frame = k.wrap(&o)
		receive = func(link uint32, b []byte) (uint32, []byte, bool, error) {
			return k.run.FromUnderlay(k.kind, k.over6, link, b)
		}
	}
	if k.stacks[o.port] {
		receive, frame = k.run.FromStack, showingMark(&o)
	}
	port, frame, ok, err := receive(linkOf(o.port), frame)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return offer{}, false
	}
	k.taken++
	if k.stacks[o.port] {
		k.outOf++
	}
	out = offer{port: port - linkOf(0), frame: frame}
	if k.stacks[out.port] {
		k.into++
	}
	if k.tunnels[out.port] {
		k.wrapped++
		out.frame, out.tunnel = k.unwrap(t, frame)
	}
	if tunnelled {
		k.unwrapped++
		out.tunnel = o.tunnel // which the switch leaves with a frame for a port that asks nobody for it
	}
	return out, true
}

// transportSound says whether a frame's transport checksum is right, if it has
// one.
func transportSound(b []byte) bool {
	l := packet.ParseLayers(b)
	return l.L4 == 0 || l.L4Valid(b)
}

// linkOf is the number by which the kernel knows a port.
func linkOf(port uint32) uint32 { return port + 1000 }

// onLink is a memory port that the kernel knows too.
type onLink struct {
	*memory.Port
	link uint32
}

func (p onLink) Info() ports.Info {
	info := p.Port.Info()
	info.OffloadLink = p.link
	return info
}

// linked is a port as a switch with a kernel, or without, gets it.
func linked(k *trial, no uint32, p *memory.Port) ports.Port {
	switch {
	case p.Name() == "antrea-gw0":
		return linkedStack(k, no, p)
	case k == nil:
		return p
	case p.Info().Tunnel:
		k.tunnels[no] = true
		return &onUnderlay{onLink: onLink{p, linkOf(no)}, kind: k.kind, over6: k.over6}
	}
	return onLink{p, linkOf(no)}
}

// TestOffloadsChangeNothing is TestCacheChangesNothing for a switch whose
// established connections the kernel's programs forward: what leaves is the same
// byte by byte, and all that is counted and tracked is the same.
func TestOffloadsChangeNothing(t *testing.T) {
	sources := twinSources(t)
	sources["rewrites"] = rewritesSource(t)
	sources["tunnel"], sources["tunnel over IPv6"] = tunnelSource(t, false), tunnelSource(t, true)
	sources["gateway"], sources["gateway over IPv6"] = gatewaySource(t, false), gatewaySource(t, true)
	delete(sources, "labels") // there few packets are like one before
	for name, s := range sources {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			taken, carried, passed := 0, [2]int{}, [2]int{} // into and out of the tunnel, and the stack
			little := func() bool {                         // a third of the seeds have no cache of walks, so no offload
				return taken < 500 || strings.HasPrefix(name, "tunnel") && min(carried[0], carried[1]) < 100 ||
					strings.HasPrefix(name, "gateway") && min(carried[0], carried[1], passed[0], passed[1]) < 100
			}
			for i := range rounds(8, little) {
				k := newTrial(t)
				k.kind, k.over6 = tunnel.Kind(i/3%3), s.over6 // Geneve, VXLAN or GRE
				w := newTwins(t, seed+i, s, k)
				w.calm = true
				w.walk(3000, s.to)
				st := w.rigs[0].sw.OffloadStats()
				if st.Dropped != 0 {
					t.Errorf("%d packets were lost", st.Dropped)
				}
				taken += k.taken
				carried[0], carried[1] = carried[0]+k.wrapped, carried[1]+k.unwrapped
				passed[0], passed[1] = passed[0]+k.into, passed[1]+k.outOf
				t.Logf("%d taken, %d into the tunnel and %d out of it, %d into the stack and %d out of it, %+v", k.taken, k.wrapped, k.unwrapped, k.into, k.outOf, st)
			}
			if little() {
				t.Errorf("%d packets were offloaded, %d of them into the tunnel and out of it, %d the stack: this proves little", taken, carried, passed)
			}
		})
	}
}

// rewrites is a pipeline that changes whatever an offload entry can change: addresses
// and ports both ways, TOS and TTL, and for connections with a mark the Ethernet
// addresses.
const rewrites = `
	table=0,priority=9,arp actions=NORMAL
	table=0,priority=1,ip actions=ct(table=1,zone=10,nat)
	table=0,priority=1,ipv6 actions=ct(table=1,zone=10,nat)
	table=1,priority=9,ct_state=+inv+trk actions=drop
	table=1,priority=8,ct_state=-new+trk actions=goto_table:2
	table=1,priority=7,ip,nw_dst=10.1.0.1 actions=ct(commit,table=2,zone=10,nat(dst=10.0.0.2:80),exec(set_field:0x1->ct_mark))
	table=1,priority=7,ip,nw_dst=10.1.0.2 actions=ct(commit,table=2,zone=10,nat(dst=10.0.0.1),exec(set_field:0x2->ct_mark))
	table=1,priority=7,ipv6,ipv6_dst=fd01::1 actions=ct(commit,table=2,zone=10,nat(dst=[fd00::2]:80),exec(set_field:0x1->ct_mark))
	table=1,priority=6,ip,nw_dst=10.0.0.3 actions=ct(commit,table=2,zone=10,nat(src=10.0.0.1:2000-2100))
	table=1,priority=1,ip actions=ct(commit,table=2,zone=10)
	table=1,priority=1,ipv6 actions=ct(commit,table=2,zone=10)
	table=2,priority=9,ct_state=-new+trk,tcp,tcp_flags=+psh,tp_dst=443 actions=ct(commit,table=3,zone=10,exec(set_field:0x4/0x4->ct_mark))
	table=2,priority=5,ct_mark=0x1,ip actions=dec_ttl,set_field:8->nw_tos,goto_table:3
	table=2,priority=5,ct_mark=0x1,ipv6 actions=dec_ttl,set_field:8->nw_tos,goto_table:3
	table=2,priority=5,ct_mark=0x2,ip actions=dec_ttl,goto_table:3
	table=2,priority=1 actions=goto_table:3
	table=3,priority=5,ip,nw_dst=10.0.0.1 actions=set_field:02:00:00:00:00:01->eth_dst,output:1
	table=3,priority=5,ip,nw_dst=10.0.0.2 actions=set_field:02:00:00:00:00:02->eth_dst,output:2
	table=3,priority=5,ip,nw_dst=10.0.0.3 actions=output:3
	table=3,priority=5,ipv6,ipv6_dst=fd00::1 actions=output:1
	table=3,priority=5,ipv6,ipv6_dst=fd00::2 actions=set_field:02:00:00:00:00:09->eth_src,output:2`

func rewritesSource(t *testing.T) twinSource {
	all := twinSources(t)["all sorts"]
	return twinSource{
		src:   parse.Sources{Flows: parse.Text("rewrites", rewrites), Ports: all.src.Ports},
		hosts: all.hosts,
		to:    []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.1.0.1", "10.1.0.2", "fd00::1", "fd00::2", "fd01::1"},
	}
}

// tunnelSource is rewrites with one of the hosts on another Node.
func tunnelSource(t *testing.T, over6 bool) twinSource {
	s := rewritesSource(t)
	s.over6 = over6
	s.src.Flows = parse.Text("tunnel", strings.ReplaceAll(rewrites, "output:2", toNode(over6)+",output:9"))
	s.hosts = slices.Clone(s.hosts)
	for i := range s.hosts {
		if s.hosts[i].port == 2 {
			s.hosts[i].port = 9
		}
	}
	return s
}

// offloadRig is two ports between which UDP may pass, known to the kernel.
func offloadRig(t *testing.T) (*rig, *trial) {
	t.Helper()
	k := newTrial(t)
	return offloadRigOn(t, k, k.kernel), k
}

// offloadRigOn is the same over what stands before the kernel.
func offloadRigOn(t *testing.T, k *trial, kernel ports.Offload) *rig {
	t.Helper()
	return offloadRigAfter(t, k, kernel, 1)
}

// offloadRigAfter is the same with entries that are offered after so many packets.
func offloadRigAfter(t *testing.T, k *trial, kernel ports.Offload, after int) *rig {
	t.Helper()
	r := &rig{TB: t, ports: map[uint32]*memory.Port{}, now: new(int64), kernel: k}
	*r.now = 1e12
	clock := func() int64 { return *r.now }
	r.conntrack = conntrack.NewTable(conntrack.Config{Now: clock})
	sw, err := dataplane.New(dataplane.Config{Conntrack: r.conntrack, Clock: clock, Offload: kernel, OffloadAfter: after})
	r.check(err)
	r.sw = sw
	t.Cleanup(func() { closeSwitch(t, sw) })
	r.check(sw.Apply(flow.BundleOf(r.parse(parse.Sources{Flows: parse.Text("flows", `
		table=0,priority=1,ip actions=ct(table=1,zone=10)
		table=1,priority=2,ct_state=+new+trk,ip actions=ct(commit,table=2,zone=10)
		table=1,priority=1 actions=goto_table:2
		table=2,priority=1,in_port=1 actions=output:2
		table=2,priority=1,in_port=2 actions=output:1`)}))))
	for no := range uint32(2) {
		no++
		r.ports[no] = memory.New(fmt.Sprint("p", no), memory.Options{})
		r.check(sw.AddPort(no, linked(k, no, r.ports[no])))
	}
	return r
}

// talk exchanges datagrams of a connection until its packets from port 1 are the
// kernel's, or so many have been exchanged.
func (r *rig) talk(sport int, most int) (taken bool) {
	r.Helper()
	there := packettest.UDP4(packettest.Options{SrcPort: uint16(sport), Payload: []byte("question")})
	back := packettest.UDP4(packettest.Options{
		Src: packettest.Addr("10.0.0.2"), Dst: packettest.Addr("10.0.0.1"), SrcPort: 80, DstPort: uint16(sport), Payload: []byte("answer"),
	})
	for range most {
		for port, frame := range [][]byte{1: there, 2: back} {
			if frame == nil {
				continue
			}
			if _, ok := r.kernel.receive(r, offer{port: uint32(port), frame: frame}); !ok {
				r.sendFrame(uint32(port), frame)
			} else if port == 1 {
				return true
			}
		}
	}
	return false
}

// TestOffloadsEnd lists what ends an offload entry, and what of it is seen.
func TestOffloadsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		do    func(r *rig)
		event telemetry.OffloadEvent
	}{
		"a bundle":   {func(r *rig) { r.check(r.sw.Apply(&flow.Bundle{})) }, telemetry.OffloadWithdrawn},
		"a new port": {func(r *rig) { r.addPort(3, memory.Options{}) }, telemetry.OffloadWithdrawn},
		"its port":   {func(r *rig) { r.check(r.sw.RemovePort(2)); delete(r.ports, 2) }, telemetry.OffloadWithdrawn},
		"a flush":    {func(r *rig) { r.conntrack.Flush(); r.sw.Tend() }, telemetry.OffloadEnded},
		"silence":    {func(r *rig) { *r.now += 16e9; r.sw.Tend() }, telemetry.OffloadUnused},
	} {
		t.Run(name, func(t *testing.T) {
			r, k := offloadRig(t)
			if !r.talk(1000, 8) {
				t.Fatalf("nothing was taken: %+v", r.sw.OffloadStats())
			}
			for c := range r.conntrack.Dump(conntrack.Filter{}) {
				if !c.Offloaded {
					t.Errorf("not away: %v", &c)
				}
			}
			before := r.sw.OffloadStats()
			test.do(r)
			frame := packettest.UDP4(packettest.Options{SrcPort: 1000, Payload: []byte("question")})
			if _, ok := k.receive(t, offer{port: 1, frame: frame}); ok {
				t.Error("the kernel still takes packets")
			}
			r.sw.Poll()
			st := r.sw.OffloadStats()
			if st.Events[test.event] == before.Events[test.event] || st.Entries != 0 || st.Connections != 0 {
				t.Errorf("before %+v, after %+v", before, st)
			}
			for c := range r.conntrack.Dump(conntrack.Filter{}) {
				if c.Offloaded {
					t.Errorf("still away: %v", &c)
				}
			}
		})
	}
}

// TestOffloadsAreShared: a port that has more connections than there is room
// takes no other port's part.
func TestOffloadsAreShared(t *testing.T) {
	r, k := offloadRig(t)
	taken := 0
	for i := range k.kernel.Room() {
		if r.talk(1000+i, 8) {
			taken++
		}
	}
	st := r.sw.OffloadStats()
	if room := uint64(k.kernel.Room()); taken == 0 || st.Entries > room || st.Events[telemetry.OffloadNoRoom] == 0 {
		t.Errorf("%d connections were taken: %+v", taken, st)
	}
	*r.now += 16e9
	r.sw.Tend()
	if !r.talk(5000, 8) {
		t.Errorf("there is no room after all have gone: %+v", r.sw.OffloadStats())
	}
}

// TestOfferingAllocatesNothing: what a worker does for offload entries is on the packet
// path.
func TestOfferingAllocatesNothing(t *testing.T) {
	r, _ := offloadRig(t)
	r.talk(1000, 2) // walks, and begins to be replayed
	there := packettest.UDP4(packettest.Options{SrcPort: 1000, Payload: []byte("question")})
	pool, one := packet.NewPool(4, 2048), make([]*packet.Frame, 1)
	allocated := testing.AllocsPerRun(500, func() {
		pool.Get(one)
		one[0].SetBytes(there)
		r.ports[1].Inject(one...)
		r.sw.Poll()
		packet.Release(one[:r.ports[2].Collect(one)])
	})
	if allocated > 0 {
		t.Errorf("%v allocations a packet", allocated)
	}
}

// TestOffloadsWhileAllMoves runs the switch's own goroutines, with bundles, flushes,
// upkeep and dumps at the same time as packets: each packet is counted once, by
// the switch or the kernel.
func TestOffloadsWhileAllMoves(t *testing.T) {
	r, k := offloadRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.sw.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			switch i % 4 {
			case 0:
				r.check(r.sw.Apply(&flow.Bundle{}))
			case 1:
				r.conntrack.Flush()
			case 2:
				r.sw.Tend()
			case 3:
				r.sw.Flows()
				r.sw.Ports()
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	sent := uint64(0)
	for end := time.Now().Add(time.Second); time.Now().Before(end) || k.taken == 0; {
		for port, o := range map[uint32]packettest.Options{
			1: {SrcPort: 1000}, 2: {Src: packettest.Addr("10.0.0.2"), Dst: packettest.Addr("10.0.0.1"), SrcPort: 80, DstPort: 1000},
		} {
			frame := packettest.UDP4(o)
			sent++
			if _, ok := k.receive(t, offer{port: port, frame: frame}); !ok {
				f := packet.FrameOf(frame)
				if r.ports[port].Inject(f) == 0 {
					sent-- // dropped before the switch could see it
				}
			}
			r.collect()
		}
	}
	counted := func() (n uint64) {
		for _, f := range r.sw.Flows() {
			if f.Table == 0 {
				n += f.Packets
			}
		}
		return n
	}
	for end := time.Now().Add(time.Minute); counted() != sent && time.Now().Before(end); r.collect() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	running.Wait()
	if n := counted(); n != sent {
		t.Errorf("%d packets were counted of %d, %d of which the kernel took", n, sent, k.taken)
	}
	t.Logf("%d packets, %d by the kernel: %+v", sent, k.taken, r.sw.OffloadStats())
}

// TestLateOffers: an offload entry that was offered before a change, and comes after it, is not
// made.
func TestLateOffers(t *testing.T) {
	there := packettest.UDP4(packettest.Options{SrcPort: 1000, Payload: []byte("question")})
	for name, change := range map[string]func(r *rig){
		"a bundle":   func(r *rig) { r.check(r.sw.Apply(&flow.Bundle{})) },
		"a new port": func(r *rig) { r.addPort(3, memory.Options{}) },
		"nothing":    func(*rig) {},
	} {
		t.Run(name, func(t *testing.T) {
			r, k := offloadRig(t)
			r.talk(1000, 2)
			before := r.sw.OffloadStats().Events
			f := packet.FrameOf(there)
			r.ports[1].Inject(f)
			r.sw.Drain()
			change(r)
			r.sw.Poll()
			late := r.sw.OffloadStats().Events[telemetry.OffloadLate] - before[telemetry.OffloadLate]
			if _, taken := k.receive(t, offer{port: 1, frame: there}); taken != (name == "nothing") || taken != (late == 0) {
				t.Errorf("taken %v, %d offers were late", taken, late)
			}
		})
	}
}

// settling is the kernel, and records calls of Settle.
type settling struct {
	ports.Offload
	settles func()
}

func (s settling) Settle() {
	s.settles()
	s.Offload.Settle()
}

// TestRestoringWaits: restoring offload entries waits for the kernel to finish the packets under
// way, after the entries have become invalid.
func TestRestoringWaits(t *testing.T) {
	there := offer{port: 1, frame: packettest.UDP4(packettest.Options{SrcPort: 1000, Payload: []byte("question")})}
	for name, takeBack := range map[string]func(r *rig){
		"a bundle":   func(r *rig) { r.check(r.sw.Apply(&flow.Bundle{})) },
		"a new port": func(r *rig) { r.addPort(3, memory.Options{}) },
		"silence":    func(r *rig) { r.sw.OffloadStats(); *r.now += 16e9; r.sw.Tend() },
	} {
		t.Run(name, func(t *testing.T) {
			k, waits := newTrial(t), 0
			r := offloadRigOn(t, k, settling{k.kernel, func() {
				if _, taken := k.receive(t, there); taken {
					t.Error("the kernel was waited for, and took another packet")
				}
				waits++
			}})
			if !r.talk(1000, 8) {
				t.Fatalf("nothing was taken: %+v", r.sw.OffloadStats())
			}
			before := waits
			if takeBack(r); waits == before {
				t.Error("the kernel was not waited for")
			}
		})
	}
}

// TestOffloadsMindTheMTU: what is too long for the port that it would leave by is the
// switch's to refuse.
func TestOffloadsMindTheMTU(t *testing.T) {
	r, k := offloadRig(t)
	if !r.talk(1000, 8) {
		t.Fatalf("nothing was taken: %+v", r.sw.OffloadStats())
	}
	most := ports.MaxFrame(1500) - 42 // bytes of payload
	for payload, want := range map[int]bool{most: true, most + 1: false} {
		frame := packettest.UDP4(packettest.Options{SrcPort: 1000, Payload: make([]byte, payload)})
		if _, taken := k.receive(t, offer{port: 1, frame: frame}); taken != want {
			t.Errorf("of %d bytes: taken %v, want %v", len(frame), taken, want)
		}
	}
}
