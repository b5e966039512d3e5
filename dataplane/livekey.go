package dataplane

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// What passes in the kernel is not seen here. So a live trace that begins takes
// the shortcuts back whose packets it wants, and none like them is made while it
// lasts. What most filters ask for is in a shortcut's key; where one asks for more
// all come back.

// takeBack ends the shortcuts whose packets a live trace wants. When it returns
// none of their packets is under way in the kernel. The trace is armed already,
// so that no more are put.
func (s *shortcuts) takeBack(l *LiveTrace) {
	if s == nil || l.req.Match == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.cuts {
		if c := &s.cuts[at]; c.used && l.wantsKey(&c.key, c.in.no) {
			s.count(ShortcutTraced)
			s.drop(uint32(at))
		}
	}
	s.endUnused()
	s.release()
}

// wantsKey says whether any trace of the set wants packets of a shortcut.
func (s *liveSet) wantsKey(key *ports.ShortcutKey, inPort uint32) bool {
	for _, l := range s.list() {
		if l.wantsKey(key, inPort) {
			return true
		}
	}
	return false
}

// wantsKey says whether the trace may want packets of a shortcut.
func (l *LiveTrace) wantsKey(key *ports.ShortcutKey, inPort uint32) bool {
	return l.req.Match != nil && (l.req.Deep || l.req.Match(frameOfKey(key), inPort))
}

// frameOfKey is the headers of a packet that takes a shortcut, the inverse of
// signature.read.
func frameOfKey(key *ports.ShortcutKey) []byte {
	words := func(i int) uint64 { return binary.LittleEndian.Uint64(key[8*i:]) }
	b := make([]byte, sigL4v6+packet.TCPLen)
	binary.LittleEndian.PutUint64(b, words(1))
	binary.LittleEndian.PutUint64(b[8:], words(2))
	low, flags, ttl, proto := uint32(words(3)), uint16(words(3)>>32), uint8(words(3)>>48), uint8(words(3)>>56)
	l4 := sigL4v4
	if packet.Ethernet(b).Type() == packet.EtherTypeIPv6 {
		l4 = sigL4v6
		binary.LittleEndian.PutUint16(b[sigL3+2:], uint16(words(8)))
		packet.IPv6(b[sigL3:]).SetPayloadLen(packet.TCPLen)
		b[sigL3+6], b[sigL3+7] = proto, ttl
		for i := range 4 {
			binary.LittleEndian.PutUint64(b[sigL3+8+8*i:], words(4+i))
		}
	} else {
		binary.BigEndian.PutUint16(b[sigL3+2:], packet.IPv4Len+packet.TCPLen)
		b[sigL3+8], b[sigL3+9] = ttl, proto
		binary.LittleEndian.PutUint64(b[sigL3+12:], words(4))
	}
	binary.LittleEndian.PutUint32(b[l4:], low)
	if proto == packet.ProtoTCP {
		packet.TCP(b[l4:]).SetFlags(flags)
		packet.TCP(b[l4:]).SetHeaderLen(packet.TCPLen)
	}
	return b[:l4+packet.TCPLen]
}
