// Package tunnel encapsulates inner Ethernet frames for another Node, and decapsulates received
// ones.
//
//	kind.go     the kinds of tunnels and how they differ
//	geneve.go, vxlan.go, gre.go   their headers
//	walkid.go   the id of a live-traced walk
//	flow.go     the hash of a frame's flow
//	reason.go   why a datagram is refused
//
// A sent payload is a header (Kind.Init) and the inner frame behind it. Kind.Unwrap checks a
// received one: everything the peer could have got wrong, before a byte of the inner frame
// counts. It returns a typed reason if a check fails. The underlay port handles the outer IP and
// UDP headers.
//
// The package allocates nothing and keeps no state between frames, so any goroutine may call any
// function.
package tunnel

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

const (
	geneveVerOptLen = 0
	geneveFlags     = 1
	geneveProtocol  = 2
	geneveVNI       = 4

	geneveControl  = 0x80
	geneveCritical = 0x40 // one of the options is critical

	optionLen = 4
)

// Geneve is a Geneve header and what follows it (RFC 8926, section 3.4).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---+-----------+-+-+-----------+-------------------------------+
//	|Ver|  Opt Len  |O|C|    Rsvd.  |          Protocol Type        |
//	+---+-----------+-+-+-----------+---------------+---------------+
//	|        Virtual Network Identifier (VNI)       |    Reserved   |
//	+-----------------------------------------------+---------------+
//	|                                                               |
//	~                    Variable-Length Options                    ~
//	|                                                               |
//	+---------------------------------------------------------------+
type Geneve []byte

// Valid says whether the header with its options is inside the bytes. The
// accessors of the fixed part need only 8 bytes.
func (h Geneve) Valid() bool { return len(h) >= HeaderLen && h.HeaderLen() <= len(h) }

// Version is Ver; only 0 is defined.
func (h Geneve) Version() uint8 { return h[geneveVerOptLen] >> 6 }

// HeaderLen is the length of header and options in bytes, from Opt Len.
func (h Geneve) HeaderLen() int { return HeaderLen + int(h[geneveVerOptLen]&0x3f)*4 }

// Control is the O bit: the payload is a control message between endpoints.
func (h Geneve) Control() bool { return h[geneveFlags]&geneveControl != 0 }

// Protocol is the Protocol Type: an EtherType, 0x6558 for an Ethernet frame.
func (h Geneve) Protocol() uint16 { return binary.BigEndian.Uint16(h[geneveProtocol:]) }

// VNI is the 24-bit Virtual Network Identifier.
func (h Geneve) VNI() uint32 { return binary.BigEndian.Uint32(h[geneveVNI:]) >> 8 }

// Options is the options. The header must be Valid.
func (h Geneve) Options() Options { return Options(h[HeaderLen:h.HeaderLen()]) }

// Payload is what follows the options. The header must be Valid.
func (h Geneve) Payload() []byte { return h[h.HeaderLen():] }

// Init writes a header without options that announces an Ethernet frame in virtual network vni.
// It sends the lowest 24 bits of vni.
func (h Geneve) Init(vni uint32) {
	binary.BigEndian.PutUint16(h[geneveVerOptLen:], 0)
	binary.BigEndian.PutUint16(h[geneveProtocol:], packet.EtherTypeTEB)
	binary.BigEndian.PutUint32(h[geneveVNI:], vni<<8)
}

// InitOptions writes a header as Init does, with options: HeaderLen+len(o) bytes. The length of
// the options is a multiple of 4, at most packet.MaxTunnelOptions.
func (h Geneve) InitOptions(vni uint32, o packet.TunnelOptions) {
	h.Init(vni)
	h[geneveVerOptLen] = uint8(len(o) / 4)
	copy(h[HeaderLen:], o)
	for more := true; more; {
		var kind uint8
		if _, kind, _, o, more = packet.NextOption(o); more && packet.CriticalOption(kind) {
			h[geneveFlags] |= geneveCritical
		}
	}
}

// Options is the options part of a Geneve header (RFC 8926, section 3.5).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+---------------+-----+---------+
//	|          Option Class         |      Type     |R|R|R| Length  |
//	+-------------------------------+---------------+-----+---------+
//	|                  Variable-Length Option Data                  |
//	~                                                               ~
//	+---------------------------------------------------------------+
type Options []byte

// Option is one option. Its Data lies in the frame.
type Option struct {
	Class uint16
	Type  uint8
	Data  []byte
}

// Critical says that an endpoint must drop the packet if it does not know the option.
func (o Option) Critical() bool { return packet.CriticalOption(o.Type) }

// Next is the first option and the options behind it. ok is false at the end, where rest is
// empty. ok is also false at an option that does not fit; there rest is not empty.
func (o Options) Next() (opt Option, rest Options, ok bool) {
	class, kind, data, rest, ok := packet.NextOption(o)
	return Option{class, kind, data}, rest, ok
}

// check reads all options and refuses a critical one, because antrail knows none, and one that
// does not fit.
func (o Options) check() Reason {
	for len(o) > 0 {
		opt, rest, ok := o.Next()
		switch {
		case !ok:
			return OptionLength
		case opt.Critical():
			return CriticalOption
		}
		o = rest
	}
	return None
}

// fit checks that the options fill the header. It accepts unknown ones.
func (o Options) fit() Reason {
	for more := true; more; {
		_, o, more = o.Next()
	}
	if len(o) > 0 {
		return OptionLength
	}
	return None
}

func unwrapGeneve(b []byte) (inner []byte, vni uint32, why Reason) {
	h := Geneve(b)
	if why = h.check(); why == None {
		why = h.Options().check()
	}
	if why != None {
		return nil, 0, why
	}
	return h.Payload(), h.VNI(), None
}

func (h Geneve) check() Reason {
	switch {
	case len(h) < HeaderLen:
		return Short
	case h.Version() != 0:
		return Version
	case !h.Valid():
		return HeaderLength
	case h.Control():
		return Control
	case h.Protocol() != packet.EtherTypeTEB:
		return Protocol
	}
	return None
}
