package underlay

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// unopened is a port without sockets, with so many frames for single and for
// joined ones.
func unopened(t testing.TB, single, joined int) *Port {
	t.Helper()
	p := &Port{config: Config{MTU: 1500, AnyNetwork: true}, pool: packet.NewPool(single, 2048), large: packet.NewPool(joined, packet.LargeBuffer)}
	p.SetPeers(peersAt(peer))
	var err error
	if p.in, err = newInbox(); err != nil {
		t.Fatal(err)
	}
	return p
}

// arrives puts a message into the inbox, as recvmmsg would: n bytes, of which the
// kernel says that they are datagrams of a size.
func (p *Port) arrives(from netip.Addr, b []byte, size int) {
	in, i := p.in, p.in.got
	in.at = local
	copy(in.room[i].Buffer(), b)
	in.hdrs[i].len = uint32(len(b))
	in.hdrs[i].hdr.Flags = 0
	in.addrs[i] = unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: from.As16()}
	if ip := from.As16(); from.Is4() { // whose address is where IPv6 has its flow label
		in.addrs[i] = unix.RawSockaddrInet6{Family: unix.AF_INET, Flowinfo: binary.NativeEndian.Uint32(ip[12:])}
	}
	in.hdrs[i].hdr.SetControllen(0)
	if size != 0 {
		in.hdrs[i].hdr.SetControllen(24)
		c := &in.controls[i]
		c.hdr.Level, c.hdr.Type, c.size = unix.SOL_UDP, unix.UDP_GRO, int32(size)
	}
	in.got++
}

// message is inner frames in Geneve, one after the other.
func message(vni uint32, frames ...[]byte) (b []byte) {
	for _, f := range frames {
		b = append(b, wrap(vni, f)...)
	}
	return b
}

// tcpSegments is a large frame's segments of 100 bytes of payload, the last of 50.
func tcpSegments(t testing.TB, n int) (whole *packet.Frame, cut [][]byte) {
	t.Helper()
	whole = pt.Undone(pt.TCP4(pt.Options{Payload: make([]byte, 100*n-50), TCPFlags: packet.TCPAck}), 100)
	return whole, segments(t, whole)
}

// TestMessagesAreCut hands out what is in messages of several datagrams, a few at
// a time: segments joined, of whatever message they are, the rest one by one.
func TestMessagesAreCut(t *testing.T) {
	p := unopened(t, 64, 8)
	whole, cut := tcpSegments(t, 20)
	udp := pt.UDP4(pt.Options{Payload: []byte("one of three")})
	p.arrives(peer, message(7, cut[:12]...), len(wrap(7, cut[0])))
	p.arrives(peer, message(7, cut[12:]...), len(wrap(7, cut[0])))
	p.arrives(peer, message(8, udp, udp, udp), len(wrap(8, udp)))
	p.arrives(peer, message(9, udp), 0)
	var got []*packet.Frame
	for {
		p.supply(2)
		batch := make([]*packet.Frame, 2)
		n := p.deliver(batch)
		if n == 0 {
			break
		}
		got = append(got, batch[:n]...)
	}
	if len(got) != 5 {
		t.Fatalf("%d frames, want 5; %+v", len(got), p.Stats())
	}
	if got[0].Offload != whole.Offload || !bytes.Equal(got[0].Bytes(), whole.Bytes()) {
		t.Errorf("the segments became %d bytes, %+v", got[0].Len(), got[0].Offload)
	}
	for i, f := range got {
		if want := (packet.Tunnel{Src: peer, Dst: local, ID: []uint64{7, 8, 8, 8, 9}[i]}); f.Tunnel != want {
			t.Errorf("frame %d is of %+v, want %+v", i, f.Tunnel, want)
		}
		if i > 0 && !bytes.Equal(f.Bytes(), udp) {
			t.Errorf("frame %d is %x", i, f.Bytes())
		}
	}
	if s := p.Stats(); s.RxPackets != 24 || s.RxDropped+s.RxErrors != 0 {
		t.Errorf("%+v, want 24 packets as on the wire", s)
	}
}

// TestEachDatagramIsChecked has messages of which single datagrams, or all, are
// refused: each is counted.
func TestEachDatagramIsChecked(t *testing.T) {
	_, cut := tcpSegments(t, 4)
	good := wrap(7, cut[0])
	bad := bytes.Clone(good)
	bad[0] = 0x40
	n := len(good)
	gsoMessage := func(all ...[]byte) []byte { return bytes.Join(all, nil) }
	for name, c := range map[string]struct {
		from          netip.Addr
		b             []byte
		size          int
		good, dropped uint64
	}{
		"a stranger's":            {netip.MustParseAddr("127.0.0.9"), gsoMessage(good, good, good), n, 0, 3},
		"the second":              {peer, gsoMessage(good, bad, good), n, 2, 1},
		"a rest too short":        {peer, gsoMessage(good, good[:7]), n, 1, 1},
		"a size of one":           {peer, good[:20], 1, 0, 20},
		"a size below zero":       {peer, good, -5, 1, 0},
		"a size above the length": {peer, good, n + 1, 1, 0},
		"nothing":                 {peer, nil, n, 0, 1},
		"longer than the MTU":     {peer, wrap(7, make([]byte, 1519)), 0, 0, 1},
	} {
		p := unopened(t, 64, 8)
		p.arrives(c.from, c.b, c.size)
		p.supply(32)
		p.deliver(make([]*packet.Frame, 64))
		if s := p.Stats(); s.RxPackets != c.good || s.RxDropped+s.RxErrors != c.dropped {
			t.Errorf("%s: %+v, want %d packets and %d dropped", name, s, c.good, c.dropped)
		}
	}
}

// TestGSOMessagesAreOfOneTunnel does not join what came from two Nodes or of two
// networks.
func TestGSOMessagesAreOfOneTunnel(t *testing.T) {
	other := netip.MustParseAddr("127.0.0.8")
	_, cut := tcpSegments(t, 4)
	for name, c := range map[string]struct {
		from netip.Addr
		vni  uint32
		want int
	}{"one": {peer, 7, 1}, "two Nodes": {other, 7, 2}, "two networks": {peer, 8, 2}} {
		p := unopened(t, 8, 8)
		p.SetPeers(peersAt(peer, other))
		p.arrives(peer, message(7, cut[0]), 0)
		p.arrives(c.from, message(c.vni, cut[1]), 0)
		p.supply(8)
		if n := p.deliver(make([]*packet.Frame, 8)); n != c.want {
			t.Errorf("%s: %d frames, want %d", name, n, c.want)
		}
	}
}

// TestNoFrameToJoinInto leaves segments single, and without frames for those
// counts them as dropped.
func TestNoFrameToJoinInto(t *testing.T) {
	_, cut := tcpSegments(t, 4)
	p := unopened(t, 3, 0)
	p.arrives(peer, message(7, cut...), len(wrap(7, cut[0])))
	p.supply(8)
	batch := make([]*packet.Frame, 8)
	if n := p.deliver(batch); n != 3 || !bytes.Equal(batch[2].Bytes(), cut[2]) {
		t.Errorf("%d frames, want 3", n)
	}
	if s := p.Stats(); s.Reasons[ports.RxNoFrame.String()] != 1 {
		t.Errorf("%+v, want one %q", s, ports.RxNoFrame)
	}
}

// TestJoiningAllocatesNothing receives 60 coalesced segments.
func TestJoiningAllocatesNothing(t *testing.T) {
	p := unopened(t, 64, 8)
	_, cut := tcpSegments(t, 60)
	b, size, batch := message(7, cut...), len(wrap(7, cut[0])), make([]*packet.Frame, 8)
	if n := testing.AllocsPerRun(50, func() {
		p.in.clear()
		p.arrives(peer, b, size)
		p.supply(8)
		if n := p.deliver(batch); n != 1 {
			t.Errorf("%d frames", n)
		}
		packet.Release(batch[:1])
	}); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

// FuzzMessage receives any bytes as a message of datagrams of any size: whatever
// the kernel says, each frame is a part of the message, and nothing is dropped
// without being counted.
func FuzzMessage(f *testing.F) {
	_, cut := tcpSegments(f, 4)
	f.Add(message(7, cut...), len(wrap(7, cut[0])))
	f.Add(message(7, cut...), 1)
	f.Add(message(7, cut[0]), -1)
	f.Add([]byte{}, 8)
	p := unopened(f, 64, 8)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		b = b[:min(len(b), 4096)]
		before := p.Stats()
		p.in.clear()
		p.arrives(peer, b, size)
		batch := make([]*packet.Frame, 16)
		frames, bytes := 0, 0
		for {
			p.supply(16)
			n := p.deliver(batch)
			if n == 0 {
				break
			}
			for _, g := range batch[:n] {
				frames, bytes = frames+1, bytes+g.Len()
			}
			packet.Release(batch[:n])
		}
		datagrams, _ := datagramsOf(len(b), int(int32(size)))
		s := p.Stats()
		dropped := s.RxDropped + s.RxErrors - before.RxDropped - before.RxErrors
		if got := s.RxPackets - before.RxPackets; got+dropped != uint64(datagrams) || frames > datagrams || bytes > len(b) {
			t.Errorf("%d datagrams: %d received, %d dropped, %d frames of %d bytes", datagrams, got, dropped, frames, bytes)
		}
	})
}
