package offload

import (
	"encoding/binary"
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf"
)

// TestRewritten: what an offload entry changes is changed, and nothing else: TOS and TTL; and
// an address, where the checksum becomes the one of zero that is not none.
func TestRewritten(t *testing.T) {
	k, trial := open(t)
	slower := plain
	slower.TOS, slower.TTL = 8, 63
	from, to := packettest.Options{}, packettest.Options{Src: packettest.Addr("10.0.0.3")}
	to.Payload = make([]byte, 2)
	copy(to.Payload, packettest.UDP4(to)[40:]) // what is missing to a sum of all ones
	from.Payload = to.Payload
	moved := packettest.UDP4(to)
	if sum := binary.BigEndian.Uint16(moved[40:]); sum != 0xffff {
		t.Fatalf("the checksum is %x", sum)
	}
	for name, test := range map[string]struct {
		before, after []byte
		change        func(s *ports.OffloadEntry)
	}{
		"TOS and TTL": {packettest.TCP4(plain), packettest.TCP4(slower), func(s *ports.OffloadEntry) {
			s.Parts, s.IP, s.TTL, s.IPSum = ports.OffloadIP, [4]byte{1: 8}, 63, 8+0xffff-0x100
		}},
		"a sum of zero": {packettest.UDP4(from), moved, func(s *ports.OffloadEntry) {
			s.Parts, s.IPSum, s.PseudoSum = ports.OffloadAddrs, 2, 2
			copy(s.Addrs[:], moved[26:34])
		}},
	} {
		s := put(t, k, 0, test.before)
		s.L4, s.Checksum = 34, 6
		if test.before[23] == packet.ProtoTCP {
			s.Checksum = 16
		}
		test.change(s)
		if _, sent, taken, err := trial.Received(link, test.before); !taken || err != nil || string(sent) != string(test.after) {
			t.Errorf("%s: taken %v, %v, sent\n%x, want\n%x", name, taken, err, sent, test.after)
		}
	}
}

// TestOthersNotTaken is TestNotTaken for datagrams and IPv6, and for segments to come of
// a datagram.
func TestOthersNotTaken(t *testing.T) {
	k, trial := open(t)
	for name, test := range map[string]struct {
		base  []byte
		spoil func(b []byte)
		parts ports.OffloadParts
		size  uint32
	}{
		"UDP shorter than its packet": {base: packettest.UDP4(plain), spoil: func(b []byte) { b[39]-- }},
		"UDP with nothing for a sum":  {base: packettest.UDP4(plain), spoil: func(b []byte) { b[40], b[41] = 0, 0 }, parts: ports.OffloadEth},
		"UDP with a sum of ones":      {base: packettest.UDP4(plain), spoil: func(b []byte) { b[40], b[41] = 0xff, 0xff }, parts: ports.OffloadEth},
		"UDP to be cut":               {base: packettest.UDP4(plain), spoil: func([]byte) {}, size: 100},
		"another flow label":          {base: packettest.TCP6(plain), spoil: func(b []byte) { b[17] ^= 1 }},
	} {
		frame := append([]byte(nil), test.base...)
		test.spoil(frame)
		put(t, k, 0, test.base).Parts = test.parts
		verdict, err := trial.filter.Run(&ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)), Context: skBuff{Mark: link, GSOSize: test.size}})
		if err != nil || int32(verdict) != keepAll {
			t.Errorf("%s: the filter's verdict is %d, %v", name, int32(verdict), err)
		}
	}
}

// TestClosed: who closes the offload entries takes them back.
func TestClosed(t *testing.T) {
	open(t)
	k, err := Open(1)
	if err != nil {
		t.Fatal(err)
	}
	k.Generation().Store(1)
	if err := k.Close(); err != nil || k.Generation().Load() != 0 {
		t.Errorf("closed: %v, and generation %d may be taken", err, k.Generation().Load())
	}
}
