package underlay

import "github.com/antrail/antrail/packet"

// GRE comes by raw sockets. Unlike UDP's, over IPv4 they show the outer header (raw(7)).

// isRaw says that packets come by raw sockets.
func (p *Port) isRaw() bool { return p.config.Kind.Port() == 0 }

// behindIPv4 is what follows an IPv4 header; nothing when that is not whole.
func behindIPv4(b []byte) []byte {
	if h := packet.IPv4(b); h.Valid() {
		return b[h.HeaderLen():]
	}
	return nil
}
