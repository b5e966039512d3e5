package flow

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/antrail/antrail/packet"
)

// The limits of an entry. The parser checks every entry with them, and code that makes entries
// can too. ovs-ofctl refuses the same ones. The checks do not cover whether the groups, meters
// and ports of an entry exist.

// Check checks that the entry's actions fit its match and its table. The match must imply each
// field that is written. goto_table goes forward and comes last, meter comes first, conjunctions
// stand alone. It does not check the match itself. The error is an *ActionError.
func (e *Entry) Check() error {
	m := e.Match.Expand()
	return (&checker{m: &m, tags: tagsOf(&m), known: true, table: int(e.Table)}).all(e.Actions)
}

// Check checks that the group's buckets fit its type, and that their numbers differ. It does not
// check their actions.
func (g *Group) Check() error {
	if g.Type == GroupIndirect && len(g.Buckets) != 1 {
		return errors.New("an indirect group has exactly one bucket")
	}
	seen := make(map[uint32]bool)
	for _, b := range g.Buckets {
		if seen[b.ID] {
			return fmt.Errorf("bucket_id %d is given twice", b.ID)
		}
		if g.Type == GroupFastFailover && b.WatchPort == 0 {
			return errors.New("buckets of a fast-failover group need watch_port")
		}
		seen[b.ID] = true
	}
	return nil
}

// CheckActions checks that actions fit each other. They belong to no entry, as those of a bucket,
// so prerequisites are not checked. The error is an *ActionError.
func CheckActions(actions []Action) error {
	return (&checker{table: noTableKnown}).all(actions)
}

// ActionError is an error in a list of actions.
type ActionError struct {
	Index  int // in the list, from 0
	Action Action
	Msg    string
}

// Error names the action by its place, from 1, and by its word.
func (e *ActionError) Error() string {
	return fmt.Sprintf("action %d (%s): %s", e.Index+1, actionName(e.Action), e.Msg)
}

// OptionBits has the number of bits that entries use of each tun_metadata field, from the lowest
// up. 0 is an unused field.
type OptionBits [TunMetadataFields]uint8

// AddMatch adds the fields of a match. A whole field counts as many bits as its value has.
func (o *OptionBits) AddMatch(m Minimatch) {
	has := uint8(m.Word(offTunPresent/8) >> (8 * (offTunPresent % 8)))
	for i := range FieldID(TunMetadataFields) {
		if has>>i&1 != 0 {
			value, mask := m.Get(TunMetadata0 + i)
			o.addValue(TunMetadata0+i, value, mask)
		}
	}
}

// AddActions adds the fields that actions read and write.
func (o *OptionBits) AddActions(actions []Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case SetField:
			o.addValue(a.Field, a.Value, a.Mask)
		case Load:
			o.add(a.Dst)
		case Move:
			o.add(a.Src, a.Dst)
		case OutputReg:
			o.add(a.Src)
		case *CT:
			if a.ZoneSrc != nil {
				o.add(*a.ZoneSrc)
			}
			o.AddActions(a.Exec)
		case *Learn:
			for i := range a.Specs {
				o.add(a.Specs[i].Src, a.Specs[i].Dst)
			}
		case Clone:
			o.AddActions(a.Actions)
		}
	}
}

// addValue adds a field that is matched or written. It counts the bits of the mask, or those of
// the value if the mask is the whole field.
func (o *OptionBits) addValue(id FieldID, value, mask Value) {
	if mask == Ones(8*MaxTunMetadata) {
		mask = value
	}
	o.addBits(id, uint8(bits.Len64(mask.Lo)))
}

func (o *OptionBits) add(all ...Subfield) {
	for _, s := range all {
		o.addBits(s.Field, s.Ofs+s.N)
	}
}

func (o *OptionBits) addBits(id FieldID, n uint8) {
	if IsTunMetadata(id) {
		had := &o[id-TunMetadata0]
		*had = max(*had, n, 1)
	}
}

// Lacks returns the first field that a table lacks, or has with fewer bits. It is -1 if there is
// none.
func (o *OptionBits) Lacks(table []TunnelOption) int {
	missing := *o
	for _, t := range table {
		if missing[t.Index] <= 8*t.Size {
			missing[t.Index] = 0
		}
	}
	return slices.IndexFunc(missing[:], func(n uint8) bool { return n > 0 })
}

// noTableKnown is the table of actions without one (a group's).
const noTableKnown = -1

// checker tracks the known facts about a packet through a list of actions.
type checker struct {
	m     *Match
	tags  int  // VLAN tags known to exist; push_vlan and pop_vlan change it
	known bool // m selects the packets; otherwise prerequisites are not checked
	table int
	inner bool // inside clone
}

// all checks a list of actions.
func (c *checker) all(actions []Action) error {
	if i, msg := c.first(actions); msg != "" {
		return &ActionError{i, actions[i], msg}
	}
	return nil
}

// first returns the index of the first wrong action, and its fault. The fault is "" if all actions
// are right.
func (c *checker) first(actions []Action) (i int, msg string) {
	for i, a := range actions {
		if msg = c.order(i, a, actions); msg == "" {
			msg = c.action(a)
		}
		if msg != "" {
			return i, msg
		}
	}
	return 0, ""
}

// tagsOf is the number of VLAN tags that a match implies: one or none.
func tagsOf(m *Match) int {
	if m.Implies(NeedVLAN) {
		return 1
	}
	return 0
}

// TagsAfter is the number of VLAN tags after an action on a packet with tags.
func TagsAfter(a Action, tags int) int {
	switch a := a.(type) {
	case PushVLAN:
		return tags + 1
	case PopVLAN:
		return max(tags-1, 0)
	case SetField:
		if a.Field == VlanTCI && a.Mask.Lo&packet.VLANPresent != 0 {
			return int(a.Value.Lo & packet.VLANPresent / packet.VLANPresent)
		}
	case Load:
		return TagsAfter(SetField{a.Dst.Field, a.Value.Shl(int(a.Dst.Ofs)), a.Dst.Mask()}, tags)
	}
	return tags
}

// order checks an action's place in its list.
func (c *checker) order(i int, a Action, all []Action) string {
	switch a := a.(type) {
	case GotoTable:
		switch {
		case c.inner || c.table == noTableKnown:
			return "goto_table is not allowed here; use resubmit(,TABLE)"
		case i != len(all)-1:
			return "goto_table must be the last action"
		case int(a.Table) <= c.table:
			return fmt.Sprintf("goto_table must go forward; table %d does not come after %d", a.Table, c.table)
		}
	}
	if slices.ContainsFunc(all, isConjunction) && !goesWithConjunction(a) {
		return fmt.Sprintf("conjunction can stand beside note only, not beside %s", actionName(a))
	}
	return ""
}

func isConjunction(a Action) bool {
	_, is := a.(Conjunction)
	return is
}

func goesWithConjunction(a Action) bool {
	_, note := a.(Note)
	return note || isConjunction(a)
}

// action checks an action's needs of the packet. It returns "" if they are met.
func (c *checker) action(a Action) string {
	defer func() { c.tags = TagsAfter(a, c.tags) }()
	switch a := a.(type) {
	case SetField:
		return c.set(a.Field)
	case Load:
		return c.set(a.Dst.Field)
	case Move:
		if msg := c.read(a.Src.Field); msg != "" {
			return msg
		}
		return c.write(a.Dst.Field)
	case OutputReg:
		return c.read(a.Src.Field)
	case Resubmit:
		if a.CT {
			return c.needs("resubmit(…,ct)", NeedCT)
		}
	case DecTTL:
		return c.needs("dec_ttl", NeedIP)
	case PopVLAN:
		return c.needs("pop_vlan", NeedVLAN)
	case *CT:
		return c.ct(a)
	case Clone:
		return c.clone(a)
	case *Learn:
		return c.learn(a)
	}
	return ""
}

func (c *checker) needs(what string, p Prereq) string {
	if !c.known || p == NeedVLAN && c.tags > 0 || p != NeedVLAN && c.m.Implies(p) {
		return ""
	}
	return fmt.Sprintf("%s needs %s in the match", what, p)
}

func (c *checker) read(id FieldID) string { return c.needs(fields[id].Name, fields[id].Need) }

func (c *checker) write(id FieldID) string {
	f := &fields[id]
	switch {
	case f.ReadOnly:
		return f.Name + " is read-only"
	case id == CTMark || id == CTLabel:
		return f.Name + " can only be set inside ct(commit,exec(…))"
	}
	return c.needs(f.Name, f.Need)
}

// set checks a field that gets a constant. In Open vSwitch, vlan_vid has no prerequisite, so a
// move may read or write it without a tag: the frame stays untagged. set_field needs a tag,
// because its value has the bit for one.
func (c *checker) set(id FieldID) string {
	if id == VlanVID {
		return c.needs(fields[id].Name, NeedVLAN)
	}
	return c.write(id)
}

// algPrereqs is the protocol of each application layer gateway.
var algPrereqs = map[string]Prereq{"ftp": NeedTCP, "tftp": NeedUDP}

func (c *checker) ct(a *CT) string {
	if msg := c.needs("ct", NeedIP); msg != "" {
		return msg
	}
	if msg := c.needs("alg="+a.ALG, algPrereqs[a.ALG]); msg != "" {
		return msg
	}
	for _, x := range a.Exec {
		if mv, ok := x.(Move); ok {
			if msg := c.read(mv.Src.Field); msg != "" {
				return msg
			}
		}
	}
	if a.NAT == nil || !a.NAT.AddrMin.IsValid() {
		return ""
	}
	if a.NAT.AddrMin.Is4() {
		return c.needs("nat with an IPv4 address", NeedIPv4)
	}
	return c.needs("nat with an IPv6 address", NeedIPv6)
}

func (c *checker) clone(a Clone) string {
	inner := *c
	inner.inner = true
	_, msg := inner.first(a.Actions)
	return msg
}

// learn checks the parts of the learned entry. The fields that they read must be in the packet,
// those that they match and write in the match learned so far.
func (c *checker) learn(a *Learn) string {
	learned := checker{m: &Match{}, known: true}
	for i := range a.Specs {
		s := &a.Specs[i]
		if s.FromField {
			if msg := c.read(s.Src.Field); msg != "" {
				return "learn: " + msg
			}
		}
		if s.Kind == LearnOutput {
			continue
		}
		if msg := learned.learns(s); msg != "" {
			return "learn: in the learned entry, " + msg
		}
		if s.Kind == LearnMatch && !s.FromField {
			learned.m.Add(s.Dst.Field, s.Immediate.Shl(int(s.Dst.Ofs)), s.Dst.Mask())
			learned.tags = tagsOf(learned.m)
		}
	}
	return ""
}

// learns checks the field that a part of a learn action matches or writes in the learned entry. A
// load becomes a set_field there.
func (c *checker) learns(s *LearnSpec) string {
	if s.Kind == LearnLoad && s.Dst.Field == VlanVID {
		return c.set(VlanVID)
	}
	return c.read(s.Dst.Field)
}
