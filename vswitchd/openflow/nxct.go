package openflow

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// ct() holds actions: nat, and actions that set the connection's mark and label.

const (
	ctCommit = 1 << 0
	ctForce  = 1 << 1
)

// algs are the ports by which ct() names its application layer gateways.
var algs = map[uint16]string{0: "", 21: "ftp", 69: "tftp"}

func (a *actionReader) ct(r *reader) error {
	flags, zoneSrc, zone := r.u16(), r.u32(), r.u16()
	x := &flow.CT{Commit: flags&ctCommit != 0, Force: flags&ctForce != 0, Table: r.u8()}
	r.skip(3)
	alg := r.u16()
	var known bool
	x.ALG, known = algs[alg]
	switch {
	case flags&^(ctCommit|ctForce) != 0 || x.Force && !x.Commit:
		return fail(BadActionArgument, "ct() has flags %#x", flags)
	case !known:
		return fail(BadActionArgument, "ct() has no gateway for port %d", alg)
	case a.inCT:
		return fail(BadActionArgument, "ct() within ct()")
	}
	if zoneSrc == 0 {
		x.Zone = zone
	} else if err := ctZone(x, zoneSrc, zone); err != nil {
		return err
	}
	inner := actionReader{v: a.v, m: a.m, depth: a.depth + 1, inCT: true}
	if err := inner.read(r.rest()); err != nil {
		return err
	}
	x.NAT, x.Exec = inner.nat, inner.list
	for _, e := range x.Exec {
		if !setsConnection(e) {
			return fail(BadActionArgument, "ct() may set ct_mark and ct_label only")
		}
	}
	a.addAction(x)
	return nil
}

// ctZone reads a zone that a field holds.
func ctZone(x *flow.CT, field uint32, bits uint16) error {
	id, err := (&reader{b: []byte{byte(field >> 24), byte(field >> 16), byte(field >> 8), byte(field)}}).field()
	if err != nil {
		return err
	}
	ofs, n := ofsBits(bits)
	src, err := subfieldOf(id, ofs, n)
	if err == nil && n != 16 {
		err = fail(BadActionArgument, "a zone of %d bits", n)
	}
	x.ZoneSrc = &src
	return err
}

// setsConnection reports whether an action writes ct_mark or ct_label.
func setsConnection(a flow.Action) bool {
	var id flow.FieldID
	switch a := a.(type) {
	case flow.SetField:
		id = a.Field
	case flow.Load:
		id = a.Dst.Field
	case flow.Move:
		id = a.Dst.Field
	}
	return id == flow.CTMark || id == flow.CTLabel
}

// Flags and parts of NXAST_NAT.
const (
	natSource     = 1 << 0
	natDest       = 1 << 1
	natPersistent = 1 << 2
	natHash       = 1 << 3
	natRandom     = 1 << 4

	natV4Min   = 1 << 0
	natV4Max   = 1 << 1
	natV6Min   = 1 << 2
	natV6Max   = 1 << 3
	natPortMin = 1 << 4
	natPortMax = 1 << 5
)

func (a *actionReader) readNAT(r *reader) error {
	if !a.inCT || a.nat != nil || len(a.list) > 0 {
		return fail(BadActionArgument, "nat must be the first action of ct(), and only once")
	}
	r.skip(2)
	flags, parts := r.u16(), r.u16()
	n := &flow.NAT{Persistent: flags&natPersistent != 0, Hash: flags&natHash != 0, Random: flags&natRandom != 0}
	switch {
	case flags&(natSource|natDest) == natSource|natDest, flags>>5 != 0, parts>>6 != 0, n.Hash && n.Random:
		return fail(BadActionArgument, "nat has flags %#x and parts %#x", flags, parts)
	case flags&(natSource|natDest) == 0 && flags|parts != 0:
		return fail(BadActionArgument, "nat has a range, but no direction")
	case flags&natSource != 0:
		n.Type = flow.NATSource
	case flags&natDest != 0:
		n.Type = flow.NATDestination
	}
	for _, p := range []struct {
		bit  uint16
		size int
		to   *netip.Addr
	}{{natV4Min, 4, &n.AddrMin}, {natV4Max, 4, &n.AddrMax}, {natV6Min, 16, &n.AddrMin}, {natV6Max, 16, &n.AddrMax}} {
		if parts&p.bit != 0 {
			*p.to, _ = netip.AddrFromSlice(r.take(p.size))
		}
	}
	if parts&natPortMin != 0 {
		n.PortMin = r.u16()
	}
	if parts&natPortMax != 0 {
		n.PortMax = r.u16()
	}
	a.nat = n
	return natRange(n, parts)
}

// natRange completes a range, or returns an error for an invalid one.
func natRange(n *flow.NAT, parts uint16) error {
	both := parts&(natV4Min|natV4Max) != 0 && parts&(natV6Min|natV6Max) != 0
	if both || n.AddrMax.IsValid() && !n.AddrMin.IsValid() || n.PortMax != 0 && n.PortMax < n.PortMin {
		return fail(BadActionArgument, "nat has a range %v-%v, %d-%d", n.AddrMin, n.AddrMax, n.PortMin, n.PortMax)
	}
	if n.PortMin != 0 && !n.AddrMin.IsValid() {
		return fail(BadActionArgument, "nat has ports without an address")
	}
	if !n.AddrMax.IsValid() {
		n.AddrMax = n.AddrMin
	}
	if n.PortMax == 0 {
		n.PortMax = n.PortMin
	}
	if n.AddrMin.IsValid() && n.AddrMax.Less(n.AddrMin) {
		return fail(BadActionArgument, "nat has a range %v-%v", n.AddrMin, n.AddrMax)
	}
	return nil
}

// appendCT writes ct().
func (w *writer) appendCT(x *flow.CT, v Version) error {
	start := w.nxAction(nxCT)
	var flags uint16
	if x.Commit {
		flags |= ctCommit
	}
	if x.Force {
		flags |= ctForce
	}
	w.u16(flags)
	if x.ZoneSrc != nil {
		if err := w.moveHeader(x.ZoneSrc.Field, V10); err != nil {
			return err
		}
		w.u16(bitsOf(*x.ZoneSrc))
	} else {
		w.u32(0)
		w.u16(x.Zone)
	}
	w.u8(x.Table)
	w.zeros(3)
	w.u16(map[string]uint16{"ftp": 21, "tftp": 69}[x.ALG])
	if x.NAT != nil {
		w.appendNAT(x.NAT)
	}
	if err := w.actions(x.Exec, v); err != nil {
		return err
	}
	return w.endAction(start)
}

func (w *writer) appendNAT(n *flow.NAT) {
	start := w.nxAction(nxNAT)
	w.u16(0)
	at := w.len()
	flags := map[flow.NATType]int{flow.NATSource: natSource, flow.NATDestination: natDest}[n.Type]
	for bit, set := range map[int]bool{natPersistent: n.Persistent, natHash: n.Hash, natRandom: n.Random} {
		if set {
			flags |= bit
		}
	}
	w.u16(uint16(flags))
	w.u16(0)
	parts := w.natAddresses(n)
	if n.PortMin != 0 {
		parts |= natPortMin
		w.u16(n.PortMin)
		if n.PortMax > n.PortMin {
			parts |= natPortMax
			w.u16(n.PortMax)
		}
	}
	w.set16(at+2, parts)
	_ = w.endAction(start) // it is never too long
}

func (w *writer) natAddresses(n *flow.NAT) (parts int) {
	if !n.AddrMin.IsValid() {
		return 0
	}
	first, last := natV4Min, natV4Max
	if n.AddrMin.Is6() {
		first, last = natV6Min, natV6Max
	}
	w.bytes(n.AddrMin.AsSlice())
	if n.AddrMax.IsValid() && n.AddrMax != n.AddrMin {
		w.bytes(n.AddrMax.AsSlice())
		return first | last
	}
	return first
}
