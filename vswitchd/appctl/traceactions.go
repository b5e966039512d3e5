package appctl

import (
	"fmt"
	"strings"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// tracer turns the steps of a trace into passes. Steps are a flat list. The depth of a step gives the
// frame to which it belongs.
type tracer struct {
	names   *flow.Names // of ports
	groups  map[uint32]*flow.Group
	learned map[macOfVLAN]uint32 // ports of the addresses that NORMAL knows

	frames  []frame
	all     []*pass
	ct      *flow.CT // of the ct() under way
	at      flow.Key // before it
	answers int      // ct() actions so far
	resume  *pass    // begins with the next table
	last    flow.Action
}

// macOfVLAN is a learned address, in a VLAN.
type macOfVLAN struct {
	mac  uint64
	vlan uint16
}

// frame is a table, a bucket or a pass under way. Steps of a smaller depth end it.
type frame struct {
	depth int
	node  *node
	pass  *pass
	root  bool        // of the pass
	entry *flow.Entry // of a table
	// Of a bucket or clone(), whose changes to the packet end with it: the number of its remaining
	// actions, and the packet before.
	apart bool
	left  int
	saved flow.Key
	// Of a bucket: its group, and its place there.
	group  *flow.Group
	bucket int
}

func (t *tracer) newPass(k *flow.Key) *pass {
	p := &pass{number: len(t.all), start: *k, key: *k, before: *k, base: *k}
	t.all = append(t.all, p)
	return p
}

func (t *tracer) top() *frame { return &t.frames[len(t.frames)-1] }

// enterTable begins the frame of a table. With goto_table it is inside the frame of the table before.
func (t *tracer) enterTable(st *telemetry.Step) {
	if t.resume != nil {
		p := t.resume
		t.resume = nil
		thaw := p.node.addLine(nodeTable, "thaw")
		thaw.addLine(nodeTable, "Resuming from table %d", st.Table)
		t.frames = append(t.frames, frame{depth: st.Depth, node: &p.node, pass: p, root: true})
	}
	f := t.top()
	text := fmt.Sprintf("%2d. ", st.Table)
	if st.Entry == nil {
		f.node.addLine(nodeTable, "%sNo match.", text).addLine(nodeAction, "drop")
		t.frames = append(t.frames, frame{depth: st.Depth, node: f.node.subs[len(f.node.subs)-1], pass: f.pass})
		return
	}
	if match := st.Entry.Match.Text(t.names); match != "" {
		text += match + ", "
	}
	text += fmt.Sprintf("priority %d", st.Entry.Priority)
	if st.Entry.Cookie != 0 {
		text += fmt.Sprintf(", cookie %#x", st.Entry.Cookie)
	}
	t.frames = append(t.frames, frame{depth: st.Depth, node: f.node.addLine(nodeTable, "%s", text), pass: f.pass, entry: st.Entry})
}

// enterBucket begins the frame of a group's bucket.
func (t *tracer) enterBucket(g *flow.Group, i, depth int) {
	f := t.top()
	if g.Type != flow.GroupAll {
		f.node.addLine(nodeDetail, "using bucket %d", i)
	}
	t.frames = append(t.frames, frame{
		depth: depth, node: f.node.addLine(nodeBucket, "bucket %d", i), pass: f.pass,
		apart: true, left: len(g.Buckets[i].Actions), saved: f.pass.key, group: g, bucket: i,
	})
}

// showAction adds the lines of an action.
func (t *tracer) showAction(st *telemetry.Step) {
	f := t.top()
	if f.apart && f.depth == st.Depth {
		f.left--
	}
	t.last = st.Action
	f.node.addLine(nodeAction, "%s", t.actionText(st.Action))
	switch a := st.Action.(type) {
	case flow.Move:
		t.showMove(f.node, a, &st.After)
	case flow.OutputReg:
		f.node.addLine(nodeDetail, "output port is %d", a.Src.Get(&f.pass.key).Lo)
	case flow.Normal:
		f.node.addLine(nodeDetail, "%s", t.normalText(&f.pass.key))
	case flow.GroupAction:
		if g := t.groups[a.ID]; g != nil && g.Type == flow.GroupAll && len(g.Buckets) > 0 {
			t.enterBucket(g, 0, st.Depth)
		}
	case flow.Clone:
		t.frames = append(t.frames, frame{depth: st.Depth, node: f.node, pass: f.pass, apart: true, left: len(a.Actions), saved: f.pass.key})
	case *flow.CT:
		t.ct, t.at = a, f.pass.key
		t.showCT(f.node, a)
	}
}

func (t *tracer) actionText(a flow.Action) string {
	return flow.ActionsText([]flow.Action{a}, flow.Format{Names: t.names})
}

// showMove adds the line with the new value of the field that a move() writes.
func (t *tracer) showMove(n *node, a flow.Move, k *flow.Key) {
	name, _, _ := strings.Cut(strings.TrimPrefix(t.actionText(flow.OutputReg{Src: a.Dst}), "output:"), " ")
	value := a.Dst.Get(k)
	text := hexText(value)
	if f := flow.FieldByID(a.Dst.Field); a.Dst == f.Full() {
		_, text, _ = strings.Cut(flow.FieldText(f.ID, k, t.names), "=")
	}
	n.addLine(nodeDetail, "%s is now %s", name, text)
}

// normalText is the line about where NORMAL sends a packet.
func (t *tracer) normalText(k *flow.Key) string {
	key := macOfVLAN{mac: get(k, flow.EthDst)}
	if get(k, flow.VlanTCI)&packet.VLANPresent != 0 {
		key.vlan = uint16(get(k, flow.VlanVID))
	}
	switch port, known := t.learned[key]; {
	case known && port == k.InPort(), key.mac == get(k, flow.EthSrc):
		return "learned port is input port, dropping"
	case known:
		return "forwarding to learned port"
	}
	return "no learned MAC for destination, flooding"
}

// showCT adds the lines of a ct().
func (t *tracer) showCT(n *node, a *flow.CT) {
	actions := 0
	if a.NAT != nil {
		actions++
		n.addLine(nodeAction, "%s", natAction(a))
	}
	for _, x := range a.Exec {
		actions++
		n.addLine(nodeAction, "%s", t.actionText(x))
		if m, ok := x.(flow.Move); ok {
			k := t.at
			m.Dst.Put(&k, m.Src.Get(&t.at))
			t.showMove(n, m, &k)
		}
	}
	if actions == 0 {
		n.addLine(nodeAction, "drop")
	}
	if a.Table != flow.NoTable {
		n.addLine(nodeDetail, "A clone of the packet is forked to recirculate. The forked pipeline will be resumed at table %d.", a.Table)
	}
	n.addLine(nodeDetail, "Sets the packet to an untracked state, and clears all the conntrack fields.")
}

// natAction is the nat() of a ct() as an action of its own.
func natAction(a *flow.CT) string {
	only := flow.ActionsText([]flow.Action{&flow.CT{Table: flow.NoTable, NAT: a.NAT}}, flow.Format{})
	return strings.TrimSuffix(strings.TrimPrefix(only, "ct("), ")")
}

// beginCT adds the datapath's ct(), and begins a pass if the ct() has a table.
func (t *tracer) beginCT(st *telemetry.Step) {
	p := t.top().pass
	answer := t.answers
	t.answers++
	p.addSets(&t.at)
	p.actions = append(p.actions, datapathCT(t.ct, st.CT))
	if t.ct.Table == flow.NoTable {
		p.base = st.After // the datapath's nat() has changed the packet
		return
	}
	t.resume = t.newPass(&st.After)
	t.resume.answer, t.resume.state = answer, uint64(st.Meta.State)
	p.later = append(p.later, t.resume)
	p.actions = append(p.actions, fmt.Sprintf("recirc(%#x)", t.resume.number))
	p.key = t.at
	p.key.SetConntrack(&flow.Conntrack{})
	p.before = p.key
}

// showDrop adds the line about a drop.
func (t *tracer) showDrop(st *telemetry.Step) {
	f := t.top()
	switch st.Reason {
	case telemetry.DropTableMiss:
	case telemetry.DropByEntry:
		f.node.addLine(nodeAction, "drop")
	case telemetry.DropNoBucket:
		f.node.addLine(nodeDetail, "no live bucket")
	case telemetry.DropToInPort:
		if _, normal := t.last.(flow.Normal); !normal {
			f.node.addLine(nodeWarning, "skipping output to input port")
		}
	case telemetry.DropNoSuchPort:
		switch t.last.(type) {
		case flow.Flood, flow.All, flow.Normal:
		default:
			f.node.addLine(nodeWarning, "Nonexistent output port")
		}
	case telemetry.DropTTL:
		family := "IPv4"
		if uint16(get(&f.pass.key, flow.EthType)) == packet.EtherTypeIPv6 {
			family = "IPv6"
		}
		f.left = 0
		f.node.addLine(nodeWarning, "%s decrement TTL exception", family)
		f.pass.addPacketIn(flow.Controller{Reason: "invalid_ttl", MaxLen: 65535}, t.cookie())
	default:
		f.node.addLine(nodeWarning, "%s", st.Reason.Sentence())
	}
}
