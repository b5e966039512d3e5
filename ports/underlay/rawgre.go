package underlay

import "github.com/antrail/antrail/packet"

// GRE uses raw sockets. Over IPv4 these show the outer header, unlike UDP's (raw(7)).

// isRaw says that packets come through raw sockets.
func (p *Port) isRaw() bool { return p.config.Kind.Port() == 0 }

// behindIPv4 is the bytes after an IPv4 header; none if the header is not whole.
func behindIPv4(b []byte) []byte {
	if h := packet.IPv4(b); h.Valid() {
		return b[h.HeaderLen():]
	}
	return nil
}
