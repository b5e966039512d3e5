package dataplane_test

import (
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// FuzzWalk gives the seed's pipeline any bytes at any port: it must not panic,
// every packet has a verdict, and every frame comes back to its pool.
func FuzzWalk(f *testing.F) {
	vlan := packettest.Options{VLAN: 5}
	for _, frame := range [][]byte{
		packettest.TCP4(packettest.Options{}), packettest.UDP4(vlan), packettest.ICMPEcho4(packettest.Options{}),
		packettest.TCP6(packettest.Options{}), packettest.SCTP4(packettest.Options{}), packettest.ARPRequest(packettest.Options{}),
		packettest.NeighborSolicit6(packettest.Options{}), packettest.ICMPError4(packettest.Options{}, 3, 4, packettest.TCP4(packettest.Options{}), 8),
		make([]byte, 13), make([]byte, 1500),
	} {
		for _, port := range []byte{0, 1, 5} {
			f.Add(port, frame)
		}
	}
	r := newExample(f, "seed/seed")
	ports := r.sw.Ports()
	pool := packet.NewPool(16, packet.Headroom+2048)
	f.Fuzz(func(t *testing.T, port byte, frame []byte) {
		frame = frame[:min(len(frame), 2000)]
		in := r.ports[ports[int(port)%len(ports)].No]
		before, refused := total(r.sw.Drops()), r.refusedByPorts()
		one := make([]*packet.Frame, 1)
		pool.Get(one)
		one[0].SetBytes(frame)
		in.Inject(one[0])
		r.sw.Poll()
		sent := len(r.collect()) + len(r.packetIns) + int(r.refusedByPorts()-refused)
		if dropped := total(r.sw.Drops()) - before; dropped > 1 || (dropped == 1) != (sent == 0) {
			t.Errorf("%x at %s: sent %d times, dropped %d times", frame, in.Name(), sent, dropped)
		}
		if pool.Free() != 16 {
			t.Fatalf("%d of 16 frames came back", pool.Free())
		}
		*r.now += 1e9
		r.packetIns = nil
	})
}

// refusedByPorts counts the frames that ports did not take: longer than their
// MTU.
func (r *rig) refusedByPorts() (n uint64) {
	for _, p := range r.sw.Ports() {
		n += p.TxDropped + p.TxErrors
	}
	return n
}
