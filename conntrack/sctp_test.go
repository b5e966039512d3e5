package conntrack

import (
	"encoding/binary"
	"testing"

	"github.com/antrail/antrail/packet"
)

// chunk is one SCTP chunk; INIT and INIT ACK announce a tag.
type chunk struct {
	typ, flags uint8
	announce   uint32
}

func sctpFrame(src, dst string, sport, dport uint16, tag uint32, chunks ...chunk) []byte {
	h := packet.SCTP(make([]byte, packet.SCTPLen))
	h.SetSrcPort(sport)
	h.SetDstPort(dport)
	h.SetVerificationTag(tag)
	for _, c := range chunks {
		value := binary.BigEndian.AppendUint32(nil, c.announce)
		h = append(h, c.typ, c.flags, 0, byte(4+len(value)))
		h = append(h, value...)
	}
	return frame(src, dst, packet.ProtoSCTP, h)
}

func TestSCTP(t *testing.T) { // CT-18, D10
	type step struct {
		side  byte
		tag   uint32
		typ   uint8
		want  string
		state string
	}
	const ctag, stag = 0xc, 0x5 // what the client and the server must be sent
	life := []step{
		{'c', 0, packet.SCTPInit, "new|trk", "COOKIE_WAIT 3"},
		{'s', ctag, packet.SCTPInitAck, "est|rpl|trk", "COOKIE_WAIT 3"},
		{'c', 0xbad, packet.SCTPCookieEcho, "inv|trk", "COOKIE_WAIT 3"},
		{'c', stag, packet.SCTPCookieEcho, "est|trk", "COOKIE_ECHOED 3"},
		{'s', ctag, packet.SCTPCookieAck, "est|rpl|trk", "ESTABLISHED 210"},
		{'c', stag, packet.SCTPData, "est|trk", "ESTABLISHED 210"},
		{'s', 0xbad, packet.SCTPData, "inv|trk", "ESTABLISHED 210"},
		{'s', ctag, packet.SCTPShutdown, "est|rpl|trk", "SHUTDOWN_RECD 3"},
		{'c', stag, packet.SCTPShutdownAck, "est|trk", "SHUTDOWN_ACK_SENT 3"},
		{'s', ctag, packet.SCTPShutdownComplete, "est|rpl|trk", "CLOSED 10"},
		{'c', 0, packet.SCTPInit, "new|trk", "COOKIE_WAIT 3"},
		{'c', 0xbad, packet.SCTPAbort, "inv|trk", "COOKIE_WAIT 3"},
	}
	stories := map[string][]step{
		"life": life,
		"an abort": append(life[:5:5],
			step{'s', 0xbad, packet.SCTPAbort, "inv|trk", "ESTABLISHED 210"},
			step{'s', ctag, packet.SCTPAbort, "est|rpl|trk", "CLOSED 10"}),
		"data does not begin an association": {{'c', stag, packet.SCTPData, "inv|trk", "-"}},
		"nor does INIT with a tag":           {{'c', stag, packet.SCTPInit, "inv|trk", "-"}},
		"a further path": {
			{'c', stag, packet.SCTPHeartbeat, "new|trk", "HEARTBEAT_SENT 3"},
			{'s', ctag, packet.SCTPHeartbeatAck, "est|rpl|trk", "ESTABLISHED 210"},
			{'c', stag, packet.SCTPData, "est|trk", "ESTABLISHED 210"},
			{'c', ctag, packet.SCTPData, "inv|trk", "ESTABLISHED 210"},
		},
	}
	for name, steps := range stories {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Config{})
			for i, s := range steps {
				c := chunk{typ: s.typ, announce: ctag}
				f := sctpFrame(client, server, 1000, 2000, s.tag, c)
				if s.side == 's' {
					c.announce = stag
					f = sctpFrame(server, client, 2000, 1000, s.tag, c)
				}
				b.want(f, commit, s.want)
				if got := b.onlyState(); got != s.state {
					t.Errorf("step %d: association %s, want %s", i, got, s.state)
				}
			}
		})
	}
}

func TestSCTPPorts(t *testing.T) { // D10: the ports are in the key, and NAT moves them
	b := newBench(t, Config{})
	open := chunk{typ: packet.SCTPInit, announce: 7}
	b.want(sctpFrame(client, service, 1000, 2000, 0, open), commitNAT("dst=10.0.0.2:8080"), "new|trk|dnat")
	b.wantTuple("src=10.0.0.1,dst=10.0.0.2,sport=1000,dport=8080")
	b.want(sctpFrame(client, service, 1000, 9999, 0, open), lookup, "new|trk")
	b.want(sctpFrame(server, client, 8080, 1000, 7, chunk{typ: packet.SCTPInitAck, announce: 9}), unNAT, "est|rpl|trk|snat")
	b.wantTuple("src=10.96.0.10,dst=10.0.0.1,sport=2000,dport=1000")
	f := sctpFrame(client, service, 1000, 2000, 9, chunk{typ: packet.SCTPCookieEcho})
	f[len(f)-1] ^= 1
	b.want(f, lookup, "inv|trk") // CRC32c
}
