package ctvectors

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/antrail/antrail/packet"
)

// The vectors as IPv6. Every IPv4 address a.b.c.d becomes fd00::a.b.c.d, in frames, flows and
// dumps. ICMP becomes ICMPv6, with the types of the same meaning. A wrong checksum stays wrong by
// the same amount. Steps without an IPv6 equivalent are left out, each for a reason.

// only4 names what has no IPv6 equivalent: a whole vector under "", or steps by their note. The
// dumps after such a step are left out too.
var only4 = map[string]map[string]string{
	"frag":           {"": "IPv6 has fragments of its own: frag6-dnat"},
	"frag-dnat":      {"": "IPv6 has fragments of its own: frag6-dnat"},
	"frag-icmp-snat": {"": "IPv6 has fragments of its own: frag6-dnat"},
	"l4-sanity": {
		"bad IP csum": "no checksum in the header", "IP option (router alert)": "options are headers of their own",
		"UDP csum 0, IPv4": "every UDP datagram has a checksum",
	},
	"icmp": {
		"timestamp": "no such request", "address mask (unsupported)": "no such request", "router solicitation": "ND: vector icmp6",
	},
	"icmp-related": {"redirect": "no error there, but ND"},
}

// only6 names the vectors whose ICMP errors Open vSwitch treats wrongly in IPv6 alone, and why.
// There, the recorded IPv4 answer is our answer.
var only6 = map[string]string{"icmp-related-dnat": "D11"}

// V6 is the vector as IPv6; nil if it has no equivalent, or is IPv6 already.
func (v *Vector) V6() (*Vector, error) {
	out := only4[v.Name]
	if out[""] != "" || strings.Contains(strings.Join(v.Flows, ""), "[fd00::") || v.Name == "icmp6" {
		return nil, nil
	}
	w := &Vector{Name: v.Name + "-v6", Doc: v.Doc, Alloc: v.Alloc}
	for _, f := range v.Flows {
		if f = FlowV6(f); !slices.Contains(w.Flows, f) {
			w.Flows = append(w.Flows, f)
		}
	}
	if v.Pipeline != nil {
		p := *v.Pipeline
		p.NAT = nat6(p.NAT)
		w.Pipeline = &p
	}
	skipped := false
	for _, s := range v.Steps {
		if out[s.Note] != "" && s.Note != "" {
			skipped = true
			continue
		}
		if s.Op == "ct" && skipped {
			continue
		}
		if err := s.to6(); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", v.Name, s.Note, err)
		}
		if len(s.OVS) > 0 && strings.Contains(s.OVS[0].State, "rel") && only6[v.Name] != "" {
			s.Ours, s.OVS, s.Diverges = s.OVS, nil, only6[v.Name]
		}
		w.Steps = append(w.Steps, s)
	}
	return w, nil
}

var (
	addr4     = regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`)
	natTarget = regexp.MustCompile(`(src|dst)=(\d+\.\d+\.\d+\.\d+)(:[\d-]+)?`)
	endpoint4 = regexp.MustCompile(`^(\d+\.\d+\.\d+\.\d+):(\d+)$`)
	matchWord = regexp.MustCompile(`\b(ip|tcp|udp|sctp|nw_src|nw_dst)\b`)
)

func addr6(text string) string {
	a := netip.MustParseAddr(text)
	if a.IsUnspecified() {
		return "::"
	}
	return to6(a.As4()).String()
}

func to6(a [4]byte) netip.Addr {
	b := [16]byte{0: 0xfd}
	copy(b[12:], a[:])
	return netip.AddrFrom16(b)
}

// nat6 translates the arguments of nat().
func nat6(text string) string {
	return natTarget.ReplaceAllStringFunc(text, func(m string) string {
		p := natTarget.FindStringSubmatch(m)
		if p[3] == "" {
			return p[1] + "=" + addr6(p[2])
		}
		return p[1] + "=[" + addr6(p[2]) + "]" + p[3]
	})
}

// FlowV6 translates a flow entry to IPv6.
func FlowV6(text string) string {
	words := map[string]string{"nw_src": "ipv6_src", "nw_dst": "ipv6_dst", "ip": "ipv6"}
	match, actions, _ := strings.Cut(text, " actions=")
	match = matchWord.ReplaceAllStringFunc(match, func(m string) string {
		if w := words[m]; w != "" {
			return w
		}
		return m + "6"
	})
	match = addr4.ReplaceAllStringFunc(match, addr6)
	return match + " actions=" + nat6(actions)
}

// dump6 translates lines of a dump.
func dump6(lines []string) []string {
	if lines == nil {
		return nil
	}
	out := []string{}
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, "icmp,"); ok {
			l = "icmpv6," + strings.NewReplacer("type=8,", "type=128,", "type=0,", "type=129,").Replace(rest)
		}
		out = append(out, addr4.ReplaceAllStringFunc(l, addr6))
	}
	slices.Sort(out)
	return out
}

// to6 translates the step to IPv6.
func (s *Step) to6() (err error) {
	if s.Hex, err = frame6(s.Hex, packet.EthernetLen); err != nil {
		return err
	}
	for _, outputs := range []*[]Output{&s.OVS, &s.Ours} {
		*outputs = slices.Clone(*outputs)
		for i := range *outputs {
			o := &(*outputs)[i]
			if o.Hex, err = frame6(o.Hex, 2); err != nil {
				return err
			}
		}
	}
	s.CT, s.OursCT = dump6(s.CT), dump6(s.OursCT)
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		if p := endpoint4.FindStringSubmatch(a); p != nil {
			s.Args[i] = "[" + addr6(p[1]) + "]:" + p[2]
		}
	}
	return nil
}

// frame6 translates a frame in hexadecimal whose IPv4 packet begins at byte l3, after its
// EtherType. Another frame stays as it is.
func frame6(text string, l3 int) (string, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) < l3+packet.IPv4Len || binary.BigEndian.Uint16(b[l3-2:]) != packet.EtherTypeIPv4 {
		return text, err
	}
	ip, err := packet6(b[l3:])
	if err != nil {
		return "", err
	}
	out := binary.BigEndian.AppendUint16(slices.Clone(b[:l3-2]), packet.EtherTypeIPv6)
	return hex.EncodeToString(append(out, ip...)), nil
}

// packet6 translates an IPv4 packet to IPv6. The packet may be cut off anywhere after its header,
// like a quoted one.
func packet6(b []byte) ([]byte, error) {
	ip := packet.IPv4(b)
	if ip.HeaderLen() != packet.IPv4Len || ip.Frag() != 0 {
		return nil, fmt.Errorf("options or fragments")
	}
	src, dst := to6(ip.Src().As4()), to6(ip.Dst().As4())
	declared := int(ip.TotalLen()) - packet.IPv4Len
	segment := slices.Clone(b[packet.IPv4Len:])
	proto := ip.Proto()
	if proto == packet.ProtoICMP {
		proto = packet.ProtoICMPv6
		before := len(segment)
		var err error
		if segment, err = icmp6(segment, src, dst); err != nil {
			return nil, err
		}
		declared += len(segment) - before
	} else if at := map[uint8]int{packet.ProtoTCP: 16, packet.ProtoUDP: 6}[proto]; at > 0 && len(segment) >= at+2 {
		movePseudo(segment[at:])
	}
	h := packet.IPv6(make([]byte, packet.IPv6Len))
	h.SetFirst(ip.TOS(), 0)
	h.SetPayloadLen(uint16(declared))
	h.SetNextHeader(proto)
	h.SetHopLimit(ip.TTL())
	h.SetSrc(src)
	h.SetDst(dst)
	return append(h, segment...), nil
}

// movePseudo changes a transport checksum from the IPv4 pseudo header to the IPv6 one. There,
// each address has 0xfd00 in front.
func movePseudo(checksum []byte) {
	sum := binary.BigEndian.Uint16(checksum)
	if sum == 0 { // none
		return
	}
	for range 2 {
		sum = packet.Update16(sum, 0, 0xfd00)
	}
	binary.BigEndian.PutUint16(checksum, sum)
}

// icmpTypes maps ICMP types and codes to those of ICMPv6 (RFC 792, RFC 4443).
var icmpTypes = map[[2]byte][2]byte{
	{8, 0}: {128, 0}, {0, 0}: {129, 0}, {3, 3}: {1, 4}, {3, 1}: {1, 3}, {11, 0}: {3, 0}, {3, 4}: {2, 0},
}

// icmp6 translates an ICMP message, with the packet that it quotes.
func icmp6(b []byte, src, dst netip.Addr) ([]byte, error) {
	to, ok := icmpTypes[[2]byte{b[0], b[1]}]
	if !ok {
		return nil, fmt.Errorf("ICMP type %d code %d", b[0], b[1])
	}
	wrong := packet.Sum(b, 0) != 0xffff
	copy(b, to[:])
	if to[0] < 128 { // an error
		quoted, err := packet6(b[packet.ICMPLen:])
		if err != nil {
			return nil, err
		}
		b = append(b[:packet.ICMPLen:packet.ICMPLen], quoted...)
	}
	b[2], b[3] = 0, 0
	pseudo := slices.Concat(src.AsSlice(), dst.AsSlice(), binary.BigEndian.AppendUint32(nil, uint32(len(b))), []byte{0, 0, 0, packet.ProtoICMPv6})
	sum := ^packet.Sum(b, packet.Sum(pseudo, 0))
	if wrong {
		sum ^= 0x5555
	}
	binary.BigEndian.PutUint16(b[2:], sum)
	return b, nil
}

// AddrV6 translates an IPv4 address to the vectors' IPv6.
func AddrV6(a netip.Addr) netip.Addr { return to6(a.As4()) }
