package parse_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// generator writes random valid flow entries: every field of the registry where
// its prerequisites hold, every action, in the spellings that add-flows accepts.
type generator struct {
	r     *rand.Rand
	m     flow.Match // the entry's match, for prerequisites
	parts []string
	table int
}

// newGenerator makes the generator of a test. A failing test prints the seed;
// FLOW_SEED sets another.
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

// entry is one line. cookie identifies it, priority keeps it apart.
func (g *generator) entry(cookie int) string {
	g.m, g.parts, g.table = flow.Match{}, nil, g.r.IntN(5)
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
		w := flow.ProtocolByWord(g.pick("ip", "icmp", "tcp", "udp", "sctp", "ipv6", "ip6", "icmp6", "tcp6", "udp6", "sctp6", "arp", "rarp", "mpls", "mplsm"))
		g.m.AddExact(flow.EthType, flow.Value{Lo: uint64(w.EthType)})
		if w.IPProto != flow.AnyProto {
			g.m.AddExact(flow.IPProto, flow.Value{Lo: uint64(w.IPProto)})
		}
		g.parts = append(g.parts, w.Word)
	} else if g.chance(50) {
		g.addRandom(flow.EthType, "eth_type", flow.Value{Lo: 0x88cc}, flow.Ones(16))
	}
	g.vlan()
	if g.chance(30) {
		g.addRandom(flow.CTState, "ct_state", flow.Value{Lo: 0x22}, flow.Value{Lo: uint64(0x22 | g.r.IntN(256))})
	}
	for id := flow.Reg0; id < flow.NumFields; id++ {
		if g.chance(12) {
			g.field(id)
		}
	}
}

// field adds a field with a random value, if its prerequisites hold.
func (g *generator) field(id flow.FieldID) {
	f := flow.FieldByID(id)
	_, have := g.m.Get(id)
	if !have.IsZero() || f.NXM == "" || !g.m.Implies(f.Need) {
		return
	}
	switch id {
	case flow.EthType, flow.VlanTCI, flow.VlanVID, flow.VlanPCP, flow.CTState, flow.ICMPv6Type, flow.IPDSCP:
		return
	case flow.IPProto:
		g.addRandom(id, "nw_proto", flow.Value{Lo: 2}, flow.Ones(8))
		return
	}
	v, mask := g.value(f)
	name := f.Name
	if f.Alias != "" && g.chance(50) {
		name = f.Alias
	}
	g.addRandom(id, name, v, mask)
}

// value is a random value and mask of a field.
func (g *generator) value(f *flow.Field) (v, mask flow.Value) {
	v, mask = flow.Value{Hi: g.r.Uint64(), Lo: g.r.Uint64()}.And(flow.Ones(f.Bits)), flow.Ones(f.Bits)
	switch {
	case f.Form == flow.PortNumber:
		return flow.Value{Lo: uint64(1 + g.r.IntN(6))}, mask
	case f.Form == flow.FragmentBits:
		return flow.Value{Lo: uint64(g.r.IntN(2))}, flow.Value{Lo: 3} // no, first: the others clash with ports
	case f.Form == flow.TunnelFlagBits || f.Form == flow.TCPFlagBits:
		all := flow.Ones(len(f.Form.Flags()))
		mask = mask.And(flow.Value{Lo: g.r.Uint64()})
		if mask.IsZero() {
			mask = all
		}
		return v.And(mask), mask
	case f.ID == flow.ArpOp:
		return flow.Value{Lo: v.Lo & 255}, mask
	case f.ID == flow.CTNwProto:
		return flow.Value{Lo: packet.ProtoTCP}, mask
	case f.ID == flow.IPTOS:
		return flow.Value{Lo: v.Lo & 0xfc}, mask
	}
	if g.chance(10) {
		v = flow.Value{}
	}
	if f.Maskable && g.chance(50) {
		mask = g.mask(f)
	}
	return v.And(mask), mask
}

func (g *generator) mask(f *flow.Field) flow.Value {
	mask := flow.Value{Hi: g.r.Uint64(), Lo: g.r.Uint64()}.And(flow.Ones(f.Bits))
	if g.chance(50) {
		n := 1 + g.r.IntN(f.Bits)
		mask = flow.Ones(n).Shl(f.Bits - n)
	}
	if f.Form == flow.IPv6Address { // ovs-ofctl reads other masks as prefix lengths
		mask = mask.Or(flow.Value{Hi: 0xffff << 48})
	}
	if mask.IsZero() {
		mask = flow.Value{Lo: 1}
	}
	return mask
}

func (g *generator) addRandom(id flow.FieldID, name string, v, mask flow.Value) {
	f := flow.FieldByID(id)
	text := ""
	switch f.Form {
	case flow.CTStateBits, flow.TCPFlagBits, flow.TunnelFlagBits:
		text = g.flags(f.Form.Flags(), v.Lo, mask.Lo)
	case flow.FragmentBits:
		text = []string{"no", "first"}[v.Lo]
	default:
		text = valueText(f, v, mask, g.names())
	}
	g.m.Add(id, v, mask)
	g.parts = append(g.parts, name+"="+text)
}

// flags writes flags in one of three ways.
func (g *generator) flags(words []string, bits, mask uint64) string {
	whole := mask == 1<<len(words)-1
	if !whole && g.chance(50) {
		return fmt.Sprintf("%#x/%#x", bits, mask)
	}
	var set []string
	signed := ""
	for i, w := range words {
		switch {
		case bits>>i&1 != 0:
			set = append(set, w)
			signed += "+" + w
		case mask>>i&1 != 0:
			signed += "-" + w
		}
	}
	switch {
	case !whole:
		return signed
	case len(set) == 0:
		return "0"
	}
	return strings.Join(set, "|")
}

// valueText writes a value, and its mask if it has one.
func valueText(f *flow.Field, v, mask flow.Value, n *flow.Names) string {
	text := exactText(f, v, n)
	if mask == flow.Ones(f.Bits) {
		return text
	}
	for n := range f.Bits {
		if (f.Form == flow.IPv4Address || f.Form == flow.IPv6Address) && mask == flow.Ones(n).Shl(f.Bits-n) {
			return fmt.Sprintf("%s/%d", text, n)
		}
	}
	if f.Form == flow.Decimal {
		return text + "/" + hexText(mask)
	}
	return text + "/" + exactText(f, mask, nil)
}

func exactText(f *flow.Field, v flow.Value, n *flow.Names) string {
	switch f.Form {
	case flow.MACAddress:
		mac := v.MAC()
		return net.HardwareAddr(mac[:]).String()
	case flow.IPv4Address, flow.IPv6Address:
		return v.Addr(f.Bits).String()
	case flow.PortNumber:
		if name := n.Port(uint32(v.Lo)); name != "" {
			return strconv.Quote(name)
		}
		fallthrough
	case flow.Decimal:
		return strconv.FormatUint(v.Lo, 10)
	}
	return hexText(v)
}

func hexText(v flow.Value) string {
	if v.Hi == 0 {
		return fmt.Sprintf("%#x", v.Lo)
	}
	return fmt.Sprintf("%#x%016x", v.Hi, v.Lo)
}

// names randomly gives ports a name or a number.
func (g *generator) names() *flow.Names {
	if g.chance(50) {
		return nil
	}
	return portNames()
}

// portNames are the ports of the differential test, as in OVS.
func portNames() *flow.Names {
	n := flow.NewNames()
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
	g.m.Add(flow.VlanTCI, flow.Value{Lo: uint64(choice.value)}, flow.Value{Lo: uint64(choice.mask)})
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
		if g.m.Implies(flow.NeedCT) {
			return "resubmit(,2,ct)"
		}
		return g.pick("resubmit:"+strconv.Itoa(g.r.IntN(5)), "resubmit(1,2)", "resubmit(3,)")
	case 4:
		return fmt.Sprintf("controller(reason=%s,max_len=%d,id=%d,userdata=%02x.0a%s)", g.pick("no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"), g.r.IntN(65536), g.r.IntN(9), g.r.IntN(256), g.pick("", ",pause"))
	case 5, 6, 7:
		return g.setField()
	case 8:
		return g.load()
	case 9:
		return g.move()
	case 10:
		if g.m.Implies(flow.NeedIP) {
			return g.ct()
		}
		return "ct_clear"
	case 11:
		if depth < 3 {
			return "clone(" + g.action(depth+1) + "," + g.action(depth+1) + ")"
		}
		return "note:01.02.03"
	case 12:
		if g.m.Implies(flow.NeedIP) {
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
	case g.m.Implies(flow.NeedIPv4) && g.chance(50):
		return g.pick("mod_nw_src:10.1.2.3", "mod_nw_dst:10.1.2.3", "mod_nw_tos:16", "mod_nw_ecn:1")
	case g.m.Implies(flow.NeedTCP) || g.m.Implies(flow.NeedUDP) || g.m.Implies(flow.NeedSCTP):
		return g.pick("mod_tp_src:5", "mod_tp_dst:6")
	}
	return g.pick("mod_dl_src:00:00:00:00:00:05", "mod_dl_dst:00:00:00:00:00:06", "set_tunnel:0x77")
}

// writableField is a field that an action may write for this match.
func (g *generator) writableField() *flow.Field {
	for {
		f := flow.FieldByID(flow.FieldID(g.r.IntN(int(flow.NumFields))))
		special := f.ID == flow.FieldNone || f.ID == flow.VlanTCI && g.m.Implies(flow.NeedVLAN) || f.ID == flow.CTMark || f.ID == flow.CTLabel || f.ID == flow.VlanVID
		if !special && !f.ReadOnly && f.NXM != "" && g.m.Implies(f.Need) {
			return f
		}
	}
}

func (g *generator) setField() string {
	if g.m.Implies(flow.NeedVLAN) && g.chance(10) {
		return fmt.Sprintf("set_field:%d->vlan_vid", 4096+g.r.IntN(4096))
	}
	f := g.writableField()
	v, mask := g.value(f)
	if f.Form == flow.TunnelFlagBits {
		return "set_field:" + g.pick("oam", "0") + "->tun_flags"
	}
	return "set_field:" + valueText(f, v, mask, g.names()) + "->" + f.Name
}

// some is a random subfield of a field, at least one bit.
func (g *generator) some(f *flow.Field) flow.Subfield {
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
	if f.ID == flow.IPTOS || f.ID == flow.ArpOp {
		return fmt.Sprintf("load:0x%x->%s[]", 4*g.r.IntN(64), f.NXM)
	}
	v := flow.Value{Hi: g.r.Uint64(), Lo: g.r.Uint64()}.And(flow.Ones(min(64, int(s.N))))
	if f.Form == flow.PortNumber {
		s, v = f.Full(), flow.Value{Lo: uint64(g.r.IntN(6))}
	}
	return "load:" + hexText(v) + "->" + subfieldText(s)
}

func (g *generator) move() string {
	field := g.writableField()
	if g.chance(5) {
		field = flow.FieldByID(flow.VlanVID) // with a tag or without
	}
	dst := g.some(field)
	src := flow.Subfield{Field: flow.XXReg0 + flow.FieldID(g.r.IntN(4)), N: dst.N}
	return "move:" + subfieldText(src) + "->" + subfieldText(dst)
}

func subfieldText(s flow.Subfield) string {
	return fmt.Sprintf("%s[%d..%d]", flow.FieldByID(s.Field).NXM, s.Ofs, s.Ofs+s.N-1)
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
	if g.m.Implies(flow.NeedTCP) {
		maybe("alg=ftp")
	}
	return "ct(" + strings.Join(o, ",") + ")"
}

func (g *generator) nat() string {
	addr := g.pick("10.0.0.1", "10.0.0.1:80", "10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.9:80-90", "10.0.0.1-10.0.0.1:80-80")
	if g.m.Implies(flow.NeedIPv6) {
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
	if g.m.Implies(flow.NeedTCP) && g.m.Implies(flow.NeedIPv4) {
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
