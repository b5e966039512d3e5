package packet

import (
	"encoding/binary"
	"iter"
	"net/netip"
)

// IGMP is a message of group management over IPv4, from its first byte on.
// Sources: RFC 1112, appendix I; RFC 2236, section 2; RFC 3376, section 4.
type IGMP []byte

// Types of IGMP messages.
const (
	IGMPQuery    = 0x11
	IGMPReportV1 = 0x12
	IGMPReportV2 = 0x16
	IGMPLeave    = 0x17
	IGMPReportV3 = 0x22
)

// Lengths of IGMP messages: of version 1 and 2, of a query of version 3 without sources,
// and of a group record without sources.
const (
	IGMPLen       = 8
	IGMPQueryLen  = 12
	igmpRecordLen = 8
)

// Types of group records (RFC 3376, section 4.2.12).
const (
	igmpIsInclude  = 1
	igmpIsExclude  = 2
	igmpToInclude  = 3
	igmpToExclude  = 4
	igmpAllowNew   = 5
	igmpAddressLen = 4
)

// Membership is a report about one group.
type Membership struct {
	Group netip.Addr
	Joins bool // otherwise it leaves
}

// Type is the type of the message; 0 for one that is too short.
func (h IGMP) Type() uint8 {
	if len(h) < IGMPLen {
		return 0
	}
	return h[0]
}

// Memberships are those in a report or a leave message, up to a record that the message does not
// hold whole. A record that includes only an empty list of sources leaves. A record that only
// blocks sources changes nothing. Source filters have no effect: a member gets all packets of its
// group.
func (h IGMP) Memberships() iter.Seq[Membership] {
	return func(yield func(Membership) bool) {
		switch h.Type() {
		case IGMPReportV1, IGMPReportV2:
			yield(Membership{addr4(h[4:]), true})
		case IGMPLeave:
			yield(Membership{addr4(h[4:]), false})
		case IGMPReportV3:
			h.records(yield)
		}
	}
}

// records yields the memberships of a version 3 report.
func (h IGMP) records(yield func(Membership) bool) {
	rest := h[IGMPLen:]
	for range binary.BigEndian.Uint16(h[6:]) {
		if len(rest) < igmpRecordLen {
			return
		}
		sources := int(binary.BigEndian.Uint16(rest[2:]))
		size := igmpRecordLen + igmpAddressLen*(sources+int(rest[1]))
		if len(rest) < size {
			return
		}
		m, counts := Membership{addr4(rest[4:]), true}, true
		switch rest[0] {
		case igmpIsInclude, igmpToInclude:
			m.Joins = sources > 0
		case igmpIsExclude, igmpToExclude, igmpAllowNew:
		default:
			counts = false
		}
		if counts && !yield(m) {
			return
		}
		rest = rest[size:]
	}
}

func addr4(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b)) }

// In a query of version 3, tenths of a second and seconds up to 127 are coded as themselves (RFC
// 3376, section 4.1.1).
const maxIGMPCode = 127

// NewIGMPQuery makes a general query of version 3, which hosts of earlier versions also
// understand. They answer within a number of tenths of a second, up to 127. interval is in
// seconds, up to 127.
func NewIGMPQuery(answerWithin, interval uint8) IGMP {
	h := make(IGMP, IGMPQueryLen)
	h[0], h[1] = IGMPQuery, min(answerWithin, maxIGMPCode)
	h[8], h[9] = igmpRobustness, min(interval, maxIGMPCode)
	binary.BigEndian.PutUint16(h[2:], ^Sum(h, 0))
	return h
}

// igmpRobustness is how often hosts repeat that they have joined or left.
const igmpRobustness = 2

// NewIGMPReport makes a report of version 3 that joins groups of IPv4, and leaves others.
func NewIGMPReport(joined, left []netip.Addr) IGMP {
	h := make(IGMP, IGMPLen, IGMPLen+(len(joined)+len(left))*igmpRecordLen)
	h[0] = IGMPReportV3
	binary.BigEndian.PutUint16(h[6:], uint16(len(joined)+len(left)))
	add := func(kind byte, groups []netip.Addr) {
		for _, g := range groups {
			a := g.As4()
			h = append(h, kind, 0, 0, 0, a[0], a[1], a[2], a[3])
		}
	}
	add(igmpIsExclude, joined)
	add(igmpToInclude, left)
	binary.BigEndian.PutUint16(h[2:], ^Sum(h, 0))
	return h
}

// Valid reports whether the message is long enough, and its checksum holds.
func (h IGMP) Valid() bool { return len(h) >= IGMPLen && Sum(h, 0) == 0xffff }
