package attack

import (
	"slices"

	"github.com/antrail/antrail/packet"
)

// Headers that no honest pod sends, on echo requests that policies allow.

// IPv4 options (RFC 791, section 3.1).
const (
	optionLoose  = 131
	optionStrict = 137
	optionNop    = 1
)

// sourceRoute is an echo request with a source route to another pod.
func sourceRoute(kind byte) func(*stage) [][]byte {
	return func(s *stage) [][]byte {
		const length, pointer = 7, 4
		o := s.to("web-a")
		o.IPOptions = slices.Concat([]byte{optionNop, kind, length, pointer}, s.pod("db-a").address.AsSlice())
		return [][]byte{s.echo(o)}
	}
}

func routingHeader(s *stage) [][]byte {
	to := s.pod("db-a").address.As16()
	return [][]byte{extended(s.echo(s.to("web-a")), wayback(to))}
}

func manyExtensions(s *stage) [][]byte {
	const many = 9
	return [][]byte{extended(s.echo(s.to("web-a")), slices.Repeat([]extension{padding(packet.ProtoDestOpts)}, many)...)}
}

func oneTag(s *stage) [][]byte {
	return [][]byte{tagged(s.echo(s.to("web-a")), customerTag)}
}

// twoTags hides the packet behind an inner tag.
func twoTags(s *stage) [][]byte {
	f := s.echo(s.to("web-a"))
	return [][]byte{tagged(f, customerTag, customerTag), tagged(f, serviceTag, customerTag)}
}

// expired are packets that should have been dropped earlier: their TTL is 0.
func expired(s *stage) [][]byte {
	f := s.echo(s.to("web-a"))
	if s.v6 {
		packet.IPv6(f[packet.EthernetLen:]).SetHopLimit(0)
		return [][]byte{f}
	}
	h := packet.IPv4(f[packet.EthernetLen:])
	h.SetTTL(0)
	h.UpdateChecksum()
	return [][]byte{f}
}
