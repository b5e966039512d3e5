package flow

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// generator writes random flow entries that are right: every field of the
// registry where its prerequisites hold, every action, in the spellings that
// add-flows takes.
type generator struct {
	r     *rand.Rand
	m     Match // what the entry asks for, to know which prerequisites hold
	parts []string
	table int
}

// newGenerator makes the generator of a test. Its seed is printed when the
// test fails; FLOW_SEED sets another.
func newGenerator(t *testing.T, seed uint64) *generator {
	if s := os.Getenv("FLOW_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("FLOW_SEED: %v", err)
		}
	}
	t.Logf("seed %d", seed)
	return &generator{r: rand.New(rand.NewPCG(seed, 1))}
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *generator) pick(words ...string) string { return words[g.r.IntN(len(words))] }

// entry is one line; cookie tells it from the others, priority keeps it apart.
func (g *generator) entry(cookie int) string {
	g.m, g.parts, g.table = Match{}, nil, g.r.IntN(5)
	g.match()
	settings := []string{fmt.Sprintf("table=%d", g.table), fmt.Sprintf("cookie=%#x", cookie), fmt.Sprintf("priority=%d", cookie)}
	if g.chance(20) {
		settings = append(settings, "idle_timeout=60")
	}
	if g.chance(20) {
		settings = append(settings, "hard_timeout=600")
	}
	if g.chance(10) {
		settings = append(settings, "send_flow_rem")
	}
	all := append(settings, g.parts...)
	g.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return strings.Join(all, g.pick(",", ", ", " ")) + g.pick(" ", ",") + "actions=" + g.actions()
}

// match fills m and parts.
func (g *generator) match() {
	if g.chance(85) {
		w := protocols[g.r.IntN(len(protocols))]
		g.m.AddExact(EthType, Value{Lo: uint64(w.ethType)})
		if w.proto != anyProto {
			g.m.AddExact(IPProto, Value{Lo: uint64(w.proto)})
		}
		g.parts = append(g.parts, w.word)
	} else if g.chance(50) {
		g.add(EthType, "eth_type", Value{Lo: 0x88cc}, Ones(16))
	}
	g.vlan()
	if g.chance(30) {
		g.add(CTState, "ct_state", Value{Lo: 0x22}, Value{Lo: uint64(0x22 | g.r.IntN(256))})
	}
	for id := Reg0; id < numFields; id++ {
		if g.chance(12) {
			g.field(id)
		}
	}
}

// field adds a field with a random value, where it may stand.
func (g *generator) field(id FieldID) {
	f := FieldByID(id)
	_, have := g.m.Get(id)
	if !have.IsZero() || f.NXM == "" || !g.m.Implies(f.Need) {
		return
	}
	switch id {
	case EthType, VlanTCI, VlanVID, VlanPCP, CTState, ICMPv6Type, IPDSCP:
		return
	case IPProto:
		g.add(id, "nw_proto", Value{Lo: 2}, Ones(8))
		return
	}
	v, mask := g.value(f)
	name := f.Name
	if f.Alias != "" && g.chance(50) {
		name = f.Alias
	}
	g.add(id, name, v, mask)
}

// value is a random value and mask of a field.
func (g *generator) value(f *Field) (v, mask Value) {
	v, mask = Value{g.r.Uint64(), g.r.Uint64()}.And(Ones(f.Bits)), Ones(f.Bits)
	switch {
	case f.Form == PortNumber:
		return Value{Lo: uint64(1 + g.r.IntN(6))}, mask
	case f.Form == FragmentBits:
		x := fragments[g.r.IntN(2)] // no, first: the others clash with ports
		return Value{Lo: x.value}, Value{Lo: x.mask}
	case f.Form == TunnelFlagBits || f.Form == TCPFlagBits:
		all := Ones(len(flagWords[f.Form]))
		mask = mask.And(Value{Lo: g.r.Uint64()})
		if mask.IsZero() {
			mask = all
		}
		return v.And(mask), mask
	case f.ID == ArpOp:
		return Value{Lo: v.Lo & 255}, mask
	case f.ID == CTNwProto:
		return Value{Lo: protoTCP}, mask
	case f.ID == IPTOS:
		return Value{Lo: v.Lo & 0xfc}, mask
	}
	if g.chance(10) {
		v = Value{}
	}
	if f.Maskable && g.chance(50) {
		mask = g.mask(f)
	}
	return v.And(mask), mask
}

func (g *generator) mask(f *Field) Value {
	mask := Value{g.r.Uint64(), g.r.Uint64()}.And(Ones(f.Bits))
	if g.chance(50) {
		n := 1 + g.r.IntN(f.Bits)
		mask = Ones(n).Shl(f.Bits - n)
	}
	if f.Form == IPv6Address { // ovs-ofctl reads other masks as prefix lengths
		mask = mask.Or(Value{Hi: 0xffff << 48})
	}
	if mask.IsZero() {
		mask = Value{Lo: 1}
	}
	return mask
}

func (g *generator) add(id FieldID, name string, v, mask Value) {
	f := FieldByID(id)
	text := ""
	switch f.Form {
	case CTStateBits, TCPFlagBits, TunnelFlagBits:
		text = fmt.Sprintf("%#x/%#x", v.Lo, mask.Lo)
		if mask == Ones(len(flagWords[f.Form])) {
			text = string(appendFlags(nil, f.Form, v.Lo))
		} else if g.chance(50) {
			text = string(appendFlagsMasked(nil, f.Form, v.Lo, mask.Lo))
		}
	case FragmentBits:
		text = string(appendFragment(nil, v.Lo, mask.Lo))
	default:
		text = string(appendMasked(nil, f, v, mask, g.names()))
	}
	g.m.Add(id, v, mask)
	g.parts = append(g.parts, name+"="+text)
}

// names gives ports a name or not, at random.
func (g *generator) names() *Names {
	if g.chance(50) {
		return nil
	}
	return portNames()
}

// portNames are the ports of the differential test, as OVS has them.
func portNames() *Names {
	n := NewNames()
	for i, name := range []string{"p1", "antrea-gw0", "3abc", "a_b"} {
		n.SetPort(uint32(i+1), name)
	}
	return n
}

func (g *generator) vlan() {
	if !g.chance(30) {
		return
	}
	vid, pcp := g.r.IntN(4096), g.r.IntN(8)
	choice := []struct {
		text        string
		value, mask int
	}{
		{fmt.Sprintf("dl_vlan=%d", vid), vid | 0x1000, 0x1fff},
		{fmt.Sprintf("vlan_tci=%#x/0x1fff", vid|0x1000), vid | 0x1000, 0x1fff},
		{fmt.Sprintf("dl_vlan_pcp=%d", pcp), pcp<<13 | 0x1000, 0xf000},
		{fmt.Sprintf("dl_vlan=%d,vlan_pcp=%d", vid, pcp), pcp<<13 | vid | 0x1000, 0xffff},
		{"vlan_tci=0x1000/0x1000", 0x1000, 0x1000},
		{"vlan_tci=0", 0, 0x1fff},
		{"dl_vlan=0xffff", 0, 0x1fff},
		{"vlan_vid=0x1005/0x1005", 0x1005, 0x1005},
		{fmt.Sprintf("vlan_vid=%d", vid|0x1000), vid | 0x1000, 0x1fff},
	}[g.r.IntN(9)]
	g.m.Add(VlanTCI, Value{Lo: uint64(choice.value)}, Value{Lo: uint64(choice.mask)})
	g.parts = append(g.parts, choice.text)
}

func (g *generator) actions() string {
	if g.chance(5) {
		return g.pick("drop", "")
	}
	if g.chance(5) {
		return fmt.Sprintf("conjunction(%d,1/2),conjunction(%d,3/3)", g.r.Uint32(), g.r.IntN(9))
	}
	var list []string
	for range 1 + g.r.IntN(4) {
		list = append(list, g.action(0))
	}
	if g.chance(30) && g.table < 4 {
		list = append(list, fmt.Sprintf("goto_table:%d", g.table+1))
	}
	return strings.Join(list, ",")
}

// action is one random action that the match allows.
func (g *generator) action(depth int) string {
	port := g.pick("1", "p1", "2", "antrea-gw0", `"antrea-gw0"`, "3abc", "4", "5", "LOCAL", "in_port")
	switch g.r.IntN(16) {
	case 0:
		return "output:" + port
	case 1:
		return g.pick("NORMAL", "IN_PORT", "LOCAL", "FLOOD", "ALL", "CONTROLLER", "controller", "normal", "controller:100", "output:reg3", "output:NXM_NX_REG1[0..15]")
	case 2:
		return fmt.Sprintf("resubmit(,%d)", g.r.IntN(5))
	case 3:
		if g.m.Implies(NeedCT) {
			return "resubmit(,2,ct)"
		}
		return g.pick("resubmit:"+strconv.Itoa(g.r.IntN(5)), "resubmit(1,2)", "resubmit(3,)")
	case 4:
		return fmt.Sprintf("controller(reason=%s,max_len=%d,id=%d,userdata=%02x.0a%s)", g.pick(controllerReasons...), g.r.IntN(65536), g.r.IntN(9), g.r.IntN(256), g.pick("", ",pause"))
	case 5, 6, 7:
		return g.setField()
	case 8:
		return g.load()
	case 9:
		return g.move()
	case 10:
		if g.m.Implies(NeedIP) {
			return g.ct()
		}
		return "ct_clear"
	case 11:
		if depth < 3 {
			return "clone(" + g.action(depth+1) + "," + g.action(depth+1) + ")"
		}
		return "note:01.02.03"
	case 12:
		if g.m.Implies(NeedIP) {
			return "dec_ttl"
		}
		return "group:1"
	case 13:
		return "push_vlan:" + g.pick("0x8100", "0x88a8") + ",pop_vlan"
	case 14:
		return g.learn()
	}
	return g.legacy()
}

// legacy is an action of OpenFlow 1.0.
func (g *generator) legacy() string {
	switch {
	case g.m.Implies(NeedIPv4) && g.chance(50):
		return g.pick("mod_nw_src:10.1.2.3", "mod_nw_dst:10.1.2.3", "mod_nw_tos:16", "mod_nw_ecn:1")
	case g.m.Implies(NeedTCP) || g.m.Implies(NeedUDP) || g.m.Implies(NeedSCTP):
		return g.pick("mod_tp_src:5", "mod_tp_dst:6")
	}
	return g.pick("mod_dl_src:00:00:00:00:00:05", "mod_dl_dst:00:00:00:00:00:06", "set_tunnel:0x77")
}

// writableField is a field that an action may write behind this match.
func (g *generator) writableField() *Field {
	for {
		f := FieldByID(FieldID(g.r.IntN(int(numFields))))
		special := f.ID == FieldNone || f.ID == VlanTCI && g.m.Implies(NeedVLAN) || f.ID == CTMark || f.ID == CTLabel || f.ID == VlanVID
		if !special && !f.ReadOnly && f.NXM != "" && g.m.Implies(f.Need) {
			return f
		}
	}
}

func (g *generator) setField() string {
	if g.m.Implies(NeedVLAN) && g.chance(10) {
		return fmt.Sprintf("set_field:%d->vlan_vid", 4096+g.r.IntN(4096))
	}
	f := g.writableField()
	v, mask := g.value(f)
	if f.Form == TunnelFlagBits {
		return "set_field:" + g.pick("oam", "0") + "->tun_flags"
	}
	return "set_field:" + string(appendMasked(nil, f, v, mask, g.names())) + "->" + f.Name
}

// some is a random subfield of a field, at least one bit.
func (g *generator) some(f *Field) Subfield {
	s := f.Full()
	if g.chance(60) {
		s.Ofs = uint8(g.r.IntN(int(s.N)))
		s.N = uint8(1 + g.r.IntN(int(s.N-s.Ofs)))
	}
	return s
}

func (g *generator) load() string {
	f := g.writableField()
	s := g.some(f)
	if f.ID == IPTOS || f.ID == ArpOp {
		return fmt.Sprintf("load:0x%x->%s[]", 4*g.r.IntN(64), f.NXM)
	}
	v := Value{g.r.Uint64(), g.r.Uint64()}.And(Ones(min(64, int(s.N))))
	if f.Form == PortNumber {
		s, v = f.Full(), Value{Lo: uint64(g.r.IntN(6))}
	}
	return "load:" + string(appendHex(nil, v)) + "->" + string(appendSubfield(nil, s))
}

func (g *generator) move() string {
	field := g.writableField()
	if g.chance(5) {
		field = FieldByID(VlanVID) // with a tag or without
	}
	dst := g.some(field)
	src := Subfield{Field: XXReg0 + FieldID(g.r.IntN(4)), N: dst.N}
	return string(appendArrow([]byte("move:"), src, dst))
}

func (g *generator) ct() string {
	var o []string
	maybe := func(text string) {
		if g.chance(40) {
			o = append(o, text)
		}
	}
	maybe(fmt.Sprintf("table=%d", g.r.IntN(5)))
	maybe(g.pick("zone=65520", "zone=NXM_NX_REG8[0..15]", "zone=0", "zone=5"))
	if g.chance(60) {
		o = append(o, "commit")
		maybe("force")
		maybe("nat(" + g.nat() + ")")
		maybe("exec(" + g.pick("set_field:0x10/0x10->ct_mark", "load:3->NXM_NX_CT_LABEL[3..5],set_field:7->ct_mark",
			"move:NXM_NX_REG0[0..3]->NXM_NX_CT_MARK[0..3]", "set_field:0x700000000/0xffffffff00000000->ct_label") + ")")
	} else {
		maybe("nat")
	}
	if g.m.Implies(NeedTCP) {
		maybe("alg=ftp")
	}
	return "ct(" + strings.Join(o, ",") + ")"
}

func (g *generator) nat() string {
	addr := g.pick("10.0.0.1", "10.0.0.1:80", "10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.9:80-90", "10.0.0.1-10.0.0.1:80-80")
	if g.m.Implies(NeedIPv6) {
		addr = g.pick("fd00::1", "[fd00::1]:80", "fd00::1-fd00::9", "[fd00::1]-[fd00::9]:80-90", "[fd00::1]")
	}
	return g.pick("src", "dst") + "=" + addr + g.pick("", ",persistent", ",random", ",hash", ",persistent,hash")
}

func (g *generator) learn() string {
	parts := []string{fmt.Sprintf("table=%d", g.r.IntN(5))}
	maybe := func(text string) {
		if g.chance(40) {
			parts = append(parts, text)
		}
	}
	maybe("priority=200")
	maybe("idle_timeout=5")
	maybe("hard_timeout=300")
	maybe("fin_idle_timeout=1")
	maybe("fin_hard_timeout=2")
	maybe("cookie=0x203000000000b")
	maybe("delete_learned")
	maybe("send_flow_rem")
	maybe("limit=7")
	if g.m.Implies(NeedTCP) && g.m.Implies(NeedIPv4) {
		parts = append(parts, "eth_type=0x800,nw_proto=6")
		maybe("NXM_OF_TCP_DST[]")
		maybe("NXM_OF_IP_DST[]=NXM_OF_IP_SRC[]")
		maybe("nw_src=10.1.2.3")
		maybe("tcp_dst=80")
	}
	maybe("NXM_OF_VLAN_TCI[0..11]")
	maybe("reg5=0x7")
	maybe("NXM_NX_REG6[3..5]=0x2")
	maybe("NXM_NX_REG6[8..11]=NXM_NX_REG0[0..3]")
	maybe("in_port=2")
	maybe("dl_src=00:00:00:00:00:07")
	maybe("metadata=0")
	maybe("load:NXM_NX_REG4[26]->NXM_NX_REG4[26]")
	maybe("load:NXM_OF_IN_PORT[]->NXM_NX_REG3[0..15]")
	maybe("load:0->NXM_NX_REG2[]")
	maybe("load:0x1->NXM_NX_REG0[9]")
	maybe("output:NXM_OF_IN_PORT[]")
	return "learn(" + strings.Join(parts, ",") + ")"
}
