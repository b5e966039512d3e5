package tunnel

import "encoding/binary"

// A trace across Nodes sends the id of a packet's walk in a Geneve option, so the packet itself
// does not change:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+---------------+-----+---------+
//	|  Option Class 0xffa7          |  Type 0x01    |R|R|R| Length 2|
//	+-------------------------------+---------------+-----+---------+
//	|                             id, 64 bits                       |
//	|                                                               |
//	+---------------------------------------------------------------+
//
// The class is one of those for experiments (RFC 8926, section 7). The type is not critical: an
// endpoint that does not know the option skips it.

const (
	traceClass = 0xffa7
	traceType  = 0x01
	traceData  = 8
)

// TraceLen is how many bytes an id adds to a header.
const TraceLen = optionLen + traceData

// CarriesTrace says whether an id can go with frames in this kind of tunnel.
func (k Kind) CarriesTrace() bool { return k == KindGeneve }

// InitTraced writes a header as Init does, HeaderLen+TraceLen bytes, with an id.
func (h Geneve) InitTraced(vni uint32, id uint64) {
	h.Init(vni)
	h[geneveVerOptLen] = TraceLen / 4
	o := h[HeaderLen:]
	binary.BigEndian.PutUint16(o, traceClass)
	o[2], o[3] = traceType, traceData/4
	binary.BigEndian.PutUint64(o[optionLen:], id)
}

// Trace is the id that came with a datagram that Unwrap has accepted; 0 for none.
func (k Kind) Trace(datagram []byte) uint64 {
	if !k.CarriesTrace() {
		return 0
	}
	for o := Geneve(datagram).Options(); len(o) > 0; {
		opt, rest, ok := o.Next()
		switch {
		case !ok:
			return 0
		case opt.Class == traceClass && opt.Type == traceType && len(opt.Data) == traceData:
			return binary.BigEndian.Uint64(opt.Data)
		}
		o = rest
	}
	return 0
}
