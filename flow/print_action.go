package flow

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/antrail/antrail/packet"
)

// The action printer, in ovs-ofctl's OpenFlow 1.5 spelling. Actions that were read in an older
// spelling (load:, mod_dl_dst:) are printed as set_field. Text for another process keeps load:,
// because the parser, like ovs-ofctl's, refuses set_field for a part of some fields.

// ActionsText is a list of actions as ovs-ofctl prints it, "drop" for none. It uses
// Names, Loads and Version of the format.
func ActionsText(actions []Action, f Format) string {
	return string(appendActions(nil, actions, f))
}

func appendActions(b []byte, actions []Action, how Format) []byte {
	if how.Version == OpenFlow10 {
		actions = spelledIn10(actions)
	}
	if len(actions) == 0 {
		return append(b, "drop"...)
	}
	for i, a := range actions {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendAction(b, a, how)
	}
	return b
}

// AppendAction appends one action to b. It uses Names, Loads and Version of the format. It is as
// long as there are actions.
func AppendAction(b []byte, a Action, how Format) []byte {
	n := how.Names
	if how.Version == OpenFlow10 {
		if b, ok := appendAction10(b, a, how); ok {
			return b
		}
	}
	switch a := a.(type) {
	case Output:
		return appendOutput(b, a.Port, n)
	case OutputReg:
		return appendSubfield(append(b, "output:"...), a.Src)
	case OutputInPort:
		return append(b, "IN_PORT"...)
	case Normal:
		return append(b, "NORMAL"...)
	case Flood:
		return append(b, "FLOOD"...)
	case All:
		return append(b, "ALL"...)
	case Controller:
		return appendController(b, &a)
	case GotoTable:
		return appendTable(append(b, "goto_table:"...), a.Table, n)
	case Resubmit:
		return appendResubmit(b, a, n)
	case SetField:
		return appendSetField(b, a, how)
	case Load:
		return appendLoad(b, a, how)
	case Move:
		return appendArrow(append(b, "move:"...), a.Src, a.Dst)
	case DecTTL:
		return append(b, "dec_ttl"...)
	case PushVLAN:
		b = append(b, "push_vlan:0x"...)
		return appendPadded(b, uint64(a.EtherType), 4)
	case PopVLAN:
		return append(b, "pop_vlan"...)
	case *CT:
		return appendCT(b, a, how)
	case CTClear:
		return append(b, "ct_clear"...)
	case GroupAction:
		return strconv.AppendUint(append(b, "group:"...), uint64(a.ID), 10)
	case Conjunction:
		return appendConjunction(b, a)
	case MeterAction:
		return strconv.AppendUint(append(b, "meter:"...), uint64(a.ID), 10)
	case Clone:
		b = appendActions(append(b, "clone("...), a.Actions, how)
		return append(b, ')')
	case Note:
		return appendDotted(append(b, "note:"...), a.Bytes)
	case *Learn:
		return appendLearn(b, a, n)
	}
	return append(b, "<unknown action>"...)
}

func appendOutput(b []byte, port uint32, n *Names) []byte {
	if port <= MaxPort {
		b = append(b, "output:"...)
	}
	return appendPort(b, port, n)
}

// appendController writes CONTROLLER:65535 for a plain packet-in and controller(…) for one with
// more arguments.
func appendController(b []byte, a *Controller) []byte {
	plain := a.Reason == "action" || a.Reason == ""
	if plain && a.ID == 0 && len(a.UserData) == 0 && !a.Pause && a.MeterID == 0 {
		return strconv.AppendUint(append(b, "CONTROLLER:"...), uint64(a.MaxLen), 10)
	}
	o := options{append(b, "controller("...), 0}
	if !plain {
		o.text("reason", a.Reason)
	}
	if a.MaxLen != 65535 {
		o.number("max_len", uint64(a.MaxLen))
	}
	if a.ID != 0 {
		o.number("id", uint64(a.ID))
	}
	if len(a.UserData) != 0 {
		o.word("userdata=")
		o.b = appendDotted(o.b, a.UserData)
	}
	if a.Pause {
		o.word("pause")
	}
	if a.MeterID != 0 {
		o.number("meter_id", uint64(a.MeterID))
	}
	return append(o.b, ')')
}

// options writes the comma-separated parts in parentheses.
type options struct {
	b []byte
	n int
}

func (o *options) word(w string) {
	if o.n > 0 {
		o.b = append(o.b, ',')
	}
	o.n++
	o.b = append(o.b, w...)
}

func (o *options) text(key, value string) { o.word(key + "=" + value) }

func (o *options) number(key string, v uint64) { o.text(key, strconv.FormatUint(v, 10)) }

// optional is number, but writes nothing for 0.
func (o *options) optional(key string, v uint16) {
	if v != 0 {
		o.number(key, uint64(v))
	}
}

func appendDotted(b, bytes []byte) []byte {
	for i, c := range bytes {
		if i > 0 {
			b = append(b, '.')
		}
		b = appendPadded(b, uint64(c), 2)
	}
	return b
}

func appendResubmit(b []byte, a Resubmit, n *Names) []byte {
	if a.InPort != PortInPort && a.Table == CurrentTable && !a.CT {
		return appendPort(append(b, "resubmit:"...), a.InPort, n)
	}
	b = append(b, "resubmit("...)
	if a.InPort != PortInPort {
		b = appendPort(b, a.InPort, n)
	}
	b = append(b, ',')
	if a.Table != CurrentTable {
		b = appendTable(b, a.Table, n)
	}
	if a.CT {
		b = append(b, ",ct"...)
	}
	return append(b, ')')
}

func appendSetField(b []byte, a SetField, how Format) []byte {
	f := &fields[a.Field]
	if s, ok := a.asLoad(); ok && how.Loads {
		return appendLoadItself(b, s)
	}
	b = append(b, "set_field:"...)
	if a.Field == VlanVID {
		b = appendVlanVID(b, a)
	} else {
		b = appendMasked(b, f, a.Value, a.Mask, how.Names)
	}
	return append(append(b, "->"...), f.Name...)
}

// appendVlanVID writes the value and mask of vlan_vid with the bit for a present tag
// (OFPVID_PRESENT, OpenFlow 1.3 section 7.2.3.7).
func appendVlanVID(b []byte, a SetField) []byte {
	b = strconv.AppendUint(b, a.Value.Lo|packet.VLANPresent, 10)
	if a.Mask == Ones(12) {
		return b
	}
	b = append(b, '/')
	return appendHex(b, a.Mask.Or(Value{Lo: packet.VLANPresent}))
}

// appendLoad writes a load as set_field with a mask. A field that does not fill its bytes keeps
// its mask even if all of it is loaded, as in OVS.
func appendLoad(b []byte, a Load, how Format) []byte {
	if how.Loads {
		return appendLoadItself(b, a)
	}
	f := &fields[a.Dst.Field]
	v, mask := a.Value.Shl(int(a.Dst.Ofs)), a.Dst.Mask()
	if a.Dst == f.Full() {
		mask = Ones(f.Bits)
	}
	b = appendMasked(append(b, "set_field:"...), f, v, mask, how.Names)
	if mask == Ones(f.Bits) && f.Bits%8 != 0 && f.Form != TunnelFlagBits {
		b = append(b, '/')
		b = appendHex(b, mask)
	}
	return append(append(b, "->"...), f.Name...)
}

// appendLoadItself writes load:0x2->NXM_NX_REG4[16..18].
func appendLoadItself(b []byte, a Load) []byte {
	v := a.Value.And(Ones(int(a.Dst.N)))
	return appendSubfield(append(appendHex(append(b, "load:"...), v), "->"...), a.Dst)
}

// asLoad is the load with the same effect, if the parser of set_field would refuse the mask. A
// learned entry may have such a set_field.
func (a SetField) asLoad() (Load, bool) {
	f := &fields[a.Field]
	if f.Maskable || a.Mask == Ones(f.Bits) || a.Mask.IsZero() {
		return Load{}, false
	}
	s := Subfield{Field: a.Field}
	for a.Mask.Shr(int(s.Ofs)).Lo&1 == 0 {
		s.Ofs++
	}
	for a.Mask.Shr(int(s.Ofs+s.N)).Lo&1 != 0 {
		s.N++
	}
	return Load{s, a.Value.Shr(int(s.Ofs))}, s.Mask() == a.Mask
}

// appendSubfield writes NXM_NX_REG0[0..3], [3] for one bit, [] for all. It does not know the
// width of a tun_metadata field.
func appendSubfield(b []byte, s Subfield) []byte {
	b = append(append(b, fields[s.Field].NXM...), '[')
	if s != fields[s.Field].Full() || IsTunMetadata(s.Field) {
		b = strconv.AppendUint(b, uint64(s.Ofs), 10)
		if s.N > 1 {
			b = strconv.AppendUint(append(b, ".."...), uint64(s.Ofs+s.N-1), 10)
		}
	}
	return append(b, ']')
}

func appendArrow(b []byte, src, dst Subfield) []byte {
	return appendSubfield(append(appendSubfield(b, src), "->"...), dst)
}

func appendConjunction(b []byte, a Conjunction) []byte {
	b = strconv.AppendUint(append(b, "conjunction("...), uint64(a.ID), 10)
	b = strconv.AppendUint(append(b, ','), uint64(a.Clause), 10)
	b = strconv.AppendUint(append(b, '/'), uint64(a.N), 10)
	return append(b, ')')
}

func appendCT(b []byte, a *CT, how Format) []byte {
	o := options{append(b, "ct("...), 0}
	if a.Commit {
		o.word("commit")
	}
	if a.Force {
		o.word("force")
	}
	if a.Table != NoTable {
		o.word("table=")
		o.b = appendTable(o.b, a.Table, how.Names)
	}
	if a.ZoneSrc != nil {
		o.word("zone=")
		o.b = appendSubfield(o.b, *a.ZoneSrc)
	} else if a.Zone != 0 {
		o.number("zone", uint64(a.Zone))
	}
	if a.NAT != nil {
		o.word("nat")
		o.b = appendNAT(o.b, a.NAT)
	}
	if len(a.Exec) > 0 {
		o.word("exec(")
		o.b = append(appendActions(o.b, a.Exec, how), ')')
	}
	if a.ALG != "" {
		o.text("alg", a.ALG)
	}
	return append(o.b, ')')
}

func appendNAT(b []byte, a *NAT) []byte {
	if a.Type == NATRestore {
		return b
	}
	o := options{append(b, '('), 0}
	o.word(map[NATType]string{NATSource: "src", NATDestination: "dst"}[a.Type])
	if a.AddrMin.IsValid() {
		o.b = appendNATRange(append(o.b, '='), a)
	}
	if a.Persistent {
		o.word("persistent")
	}
	if a.Hash {
		o.word("hash")
	}
	if a.Random {
		o.word("random")
	}
	return append(o.b, ')')
}

// appendNATRange writes addresses and ports: 10.0.0.1-10.0.0.9:80-90. IPv6 addresses are in
// brackets if ports follow.
func appendNATRange(b []byte, a *NAT) []byte {
	bracket := a.AddrMin.Is6() && a.PortMin != 0
	b = appendNATAddr(b, a.AddrMin, bracket)
	if a.AddrMax.IsValid() && a.AddrMax != a.AddrMin {
		b = appendNATAddr(append(b, '-'), a.AddrMax, bracket)
	}
	if a.PortMin == 0 {
		return b
	}
	b = strconv.AppendUint(append(b, ':'), uint64(a.PortMin), 10)
	if a.PortMax > a.PortMin {
		b = strconv.AppendUint(append(b, '-'), uint64(a.PortMax), 10)
	}
	return b
}

func appendNATAddr(b []byte, a netip.Addr, bracket bool) []byte {
	if !bracket {
		return a.AppendTo(b)
	}
	return append(a.AppendTo(append(b, '[')), ']')
}

func appendLearn(b []byte, a *Learn, n *Names) []byte {
	o := options{append(b, "learn("...), 0}
	o.word("table=")
	o.b = appendTable(o.b, a.Table, n)
	o.optional("idle_timeout", a.IdleTimeout)
	o.optional("hard_timeout", a.HardTimeout)
	o.optional("fin_idle_timeout", a.FinIdleTimeout)
	o.optional("fin_hard_timeout", a.FinHardTimeout)
	if a.Priority != DefaultPriority {
		o.number("priority", uint64(a.Priority))
	}
	if a.SendFlowRem {
		o.word("send_flow_rem")
	}
	if a.DeleteLearned {
		o.word("delete_learned")
	}
	if a.Cookie != 0 {
		o.word("cookie=")
		o.b = appendHex(o.b, Value{Lo: a.Cookie})
	}
	if a.Limit != 0 {
		o.number("limit", uint64(a.Limit))
	}
	for i := range a.Specs {
		o.word("")
		o.b = appendLearnSpec(o.b, &a.Specs[i], n)
	}
	return append(o.b, ')')
}

func appendLearnSpec(b []byte, s *LearnSpec, n *Names) []byte {
	switch {
	case s.Kind == LearnOutput:
		return appendSubfield(append(b, "output:"...), s.Src)
	case s.Kind == LearnLoad && s.FromField:
		return appendArrow(append(b, "load:"...), s.Src, s.Dst)
	case s.Kind == LearnLoad:
		b = appendHex(append(b, "load:"...), s.Immediate)
		return appendSubfield(append(b, "->"...), s.Dst)
	case s.FromField && s.Src == s.Dst:
		return appendSubfield(b, s.Dst)
	case s.FromField:
		return appendSubfield(append(appendSubfield(b, s.Dst), '='), s.Src)
	}
	f := &fields[s.Dst.Field]
	if s.Dst == f.Full() {
		b = append(append(b, f.Name...), '=')
		return appendExact(b, f, s.Immediate, n)
	}
	return appendHex(append(appendSubfield(b, s.Dst), '='), s.Immediate)
}

// actionName is an action's first word, for messages.
func actionName(a Action) string {
	text := string(AppendAction(nil, a, Format{}))
	if i := strings.IndexAny(text, ":("); i > 0 {
		return text[:i]
	}
	return text
}
