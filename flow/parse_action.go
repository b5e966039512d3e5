package flow

import (
	"encoding/hex"
	"sort"
	"strings"
)

// Actions are read by one function each, found by the action's word. What an
// action may do behind which match is not decided here but in check.go, so
// that entries made by code are checked by the same lines.

// ParseActions reads a list of actions such as dec_ttl,output:3; "drop" is an
// empty list. No match is known, so prerequisites are not checked.
func ParseActions(text string, n *Names) ([]Action, error) {
	s := span{text, 0}
	if err := checkLength(s); err != nil {
		return nil, err
	}
	p := &parser{names: n}
	list, err := p.actions(s, 0)
	if err != nil {
		return nil, err
	}
	if c := checkActions(list.actions, nil, noTableKnown); c != nil {
		return nil, list.at[c.action].errorf("%s", c.msg)
	}
	return list.actions, nil
}

// maxDepth bounds how deep clone and ct nest.
const maxDepth = 8

// actionList is actions and where each is written. Its memory, but for the
// actions, is that of the next list of its depth.
type actionList struct {
	p       *parser
	depth   int
	tags    int // VLAN tags known to be there; mod_vlan_vid pushes one if none is
	actions []Action
	so      []Action // so far, while the list is read
	at      []span
	drop    bool
}

// actions reads a list of packets of which nothing is known. depth counts the
// lists around it.
func (p *parser) actions(s span, depth int) (*actionList, error) {
	return p.actionsBehind(s, depth, 0)
}

// actionsBehind reads a list of packets known to have tags VLAN tags.
func (p *parser) actionsBehind(s span, depth, tags int) (*actionList, error) {
	if depth > maxDepth {
		return nil, s.errorf("actions nest too deep; %d levels are allowed", maxDepth)
	}
	if depth == len(p.lists) {
		p.lists = append(p.lists, &actionList{p: p, depth: depth})
	}
	l := p.lists[depth]
	*l = actionList{p: l.p, depth: depth, tags: tags, so: l.so[:0], at: l.at[:0]}
	if err := each(s, l.read); err != nil {
		return nil, err
	}
	l.actions = append([]Action(nil), l.so...)
	return l, nil
}

func (l *actionList) read(it item) error {
	if l.drop || it.key.text == "drop" && len(l.so) > 0 {
		return it.key.errorf("drop stands alone; it cannot go with other actions")
	}
	if it.key.text == "drop" {
		l.drop = true
		return it.bare()
	}
	parse := actionWords[it.key.text]
	if parse == nil {
		return l.portAction(it)
	}
	a, err := parse(l, it)
	if err != nil || a == nil {
		return err
	}
	l.add(it, a)
	return nil
}

func (l *actionList) add(it item, a Action) {
	l.tags = tagsAfter(a, l.tags)
	l.so = append(l.so, a)
	l.at = append(l.at, it.key)
}

// actionParser reads one action. It may add actions itself and return nil.
type actionParser func(*actionList, item) (Action, error)

var actionWords map[string]actionParser

func init() { actionWords = makeActionWords() } // clone reads actions in turn

func makeActionWords() map[string]actionParser {
	return map[string]actionParser{
		"output":         (*actionList).output,
		"controller":     (*actionList).controller,
		"CONTROLLER":     (*actionList).controller,
		"goto_table":     (*actionList).gotoTable,
		"resubmit":       (*actionList).resubmit,
		"set_field":      (*actionList).setField,
		"load":           (*actionList).load,
		"move":           (*actionList).move,
		"dec_ttl":        plain(DecTTL{}),
		"push_vlan":      (*actionList).pushVLAN,
		"pop_vlan":       plain(PopVLAN{}),
		"strip_vlan":     plain(PopVLAN{}),
		"ct":             (*actionList).ct,
		"ct_clear":       plain(CTClear{}),
		"nat":            (*actionList).strayNAT,
		"group":          (*actionList).group,
		"conjunction":    (*actionList).conjunction,
		"meter":          (*actionList).meter,
		"clone":          (*actionList).clone,
		"note":           (*actionList).note,
		"learn":          (*actionList).learn,
		"mod_dl_src":     set(EthSrc),
		"mod_dl_dst":     set(EthDst),
		"mod_nw_src":     set(IPSrc),
		"mod_nw_dst":     set(IPDst),
		"mod_nw_ecn":     set(IPECN),
		"mod_nw_ttl":     set(IPTTL),
		"mod_vlan_pcp":   (*actionList).modVLANPCP,
		"set_tunnel":     set(TunID),
		"set_tunnel64":   set(TunID),
		"mod_nw_tos":     (*actionList).modTOS,
		"mod_tp_src":     (*actionList).modPort,
		"mod_tp_dst":     (*actionList).modPort,
		"mod_vlan_vid":   (*actionList).modVLAN,
		"set_vlan_vid":   (*actionList).modVLAN,
		"set_vlan_pcp":   (*actionList).modVLANPCP,
		"set_mpls_label": unsupported,
		"push_mpls":      unsupported,
		"pop_mpls":       unsupported,
		"enqueue":        unsupported,
		"set_queue":      unsupported,
		"multipath":      unsupported,
		"bundle":         unsupported,
		"sample":         unsupported,
		"encap":          unsupported,
		"decap":          unsupported,
		"write_actions":  unsupported,
		"write_metadata": unsupported,
	}
}

// plain is the parser of an action without arguments.
func plain(a Action) actionParser {
	return func(_ *actionList, it item) (Action, error) {
		if it.sep == '(' && it.value.text == "" {
			return a, nil
		}
		return a, it.bare()
	}
}

func unsupported(_ *actionList, it item) (Action, error) {
	return nil, it.key.errorf("action %s is not supported by this switch", it.key.text)
}

// set is the parser of OpenFlow 1.0's mod_… actions: set_field in short.
func set(id FieldID) actionParser {
	return func(l *actionList, it item) (Action, error) {
		return l.setWhole(id, it.value)
	}
}

func (l *actionList) setWhole(id FieldID, s span) (Action, error) {
	f := &fields[id]
	v, err := l.p.plainValue(f, s)
	return SetField{Field: id, Value: v, Mask: Ones(f.Bits)}, err
}

// portAction reads a port that stands for an output to it: 3, LOCAL, "web".
func (l *actionList) portAction(it item) error {
	if it.sep == 0 {
		if port, err := l.knownPort(it.key); err == nil {
			l.add(it, outputTo(port))
			return nil
		}
	}
	words := make([]string, 0, len(actionWords))
	for w := range actionWords {
		words = append(words, w)
	}
	sort.Strings(words)
	return it.key.errorf("unknown action %q%s", it.key.text, Suggest(it.key.text, words))
}

// knownPort is port for a bare word: no new name is made from a misspelt
// action.
func (l *actionList) knownPort(s span) (uint32, error) {
	p := *l.p
	p.grow = strings.HasPrefix(s.text, `"`) && p.grow
	port, err := p.port(s)
	l.p.nextPort = p.nextPort
	return port, err
}

// outputTo is the action that sends to a port, which for reserved ports is one
// of its own.
func outputTo(port uint32) Action {
	switch port {
	case PortInPort:
		return OutputInPort{}
	case PortNormal:
		return Normal{}
	case PortFlood:
		return Flood{}
	case PortAll:
		return All{}
	case PortController:
		return Controller{MaxLen: 65535, Reason: "action"}
	}
	return Output{port}
}

func (l *actionList) output(it item) (Action, error) {
	if it.sep == '(' {
		return nil, it.value.errorf("output(…) with max_len is not supported by this switch; expected output:PORT")
	}
	if strings.HasSuffix(it.value.text, "]") || fieldNames[it.value.text] != nil && it.value.text != "in_port" {
		src, err := subfield(it.value)
		return OutputReg{src}, err
	}
	if it.value.text == "" {
		return nil, it.value.errorf("expected a port behind output:")
	}
	port, err := l.p.port(it.value)
	if err == nil && (port == PortTable || port == PortNone) {
		err = it.value.errorf("output to %s is not possible", it.value.text)
	}
	return outputTo(port), err
}

// controllerReasons are the reasons of packet-in (OpenFlow 1.4, 7.4.1).
var controllerReasons = []string{"no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"}

func (l *actionList) controller(it item) (Action, error) {
	a := Controller{MaxLen: 65535, Reason: "action"}
	if it.sep != '(' {
		if it.sep == 0 || it.value.text == "" {
			return a, nil
		}
		n, err := number(it.value, 65535)
		a.MaxLen = uint16(n)
		return a, err
	}
	err := each(it.value, func(o item) error { return controllerOption(&a, o) })
	return a, err
}

func controllerOption(a *Controller, o item) (err error) {
	var n uint64
	switch o.key.text {
	case "reason":
		a.Reason, err = oneOf(o.value, controllerReasons)
	case "max_len":
		n, err = number(o.value, 65535)
		a.MaxLen = uint16(n)
	case "id":
		n, err = number(o.value, 65535)
		a.ID = uint16(n)
	case "userdata":
		a.UserData, err = dottedHex(o.value)
	case "pause":
		a.Pause, err = true, o.bare()
	case "meter_id":
		n, err = number(o.value, maxMeter)
		a.MeterID = uint32(n)
	default:
		err = o.key.errorf("unknown controller option %q; expected reason, max_len, id, userdata, pause or meter_id", o.key.text)
	}
	return err
}

// oneOf reads one of a few words.
func oneOf(s span, words []string) (string, error) {
	for _, w := range words {
		if w == s.text {
			return w, nil
		}
	}
	return "", s.errorf("%q is unknown; expected %s", s.text, strings.Join(words, ", "))
}

// dottedHex reads bytes: 01.02.ff, dots are optional.
func dottedHex(s span) ([]byte, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(s.text, ".", ""))
	if err != nil {
		return nil, s.errorf("expected bytes in hexadecimal such as 01.02, not %q", s.text)
	}
	return b, nil
}

func (l *actionList) gotoTable(it item) (Action, error) {
	id, err := l.p.table(it.value)
	return GotoTable{id}, err
}

func (l *actionList) resubmit(it item) (Action, error) {
	a := Resubmit{InPort: PortInPort, Table: CurrentTable}
	if it.sep != '(' {
		return l.resubmitPort(a, it.value)
	}
	portText, rest, _ := it.value.cut(",")
	tableText, ctText, hasCT := rest.cut(",")
	var err error
	if portText = portText.trim(); portText.text != "" {
		if a.InPort, err = l.p.port(portText); err != nil {
			return nil, err
		}
	}
	if tableText = tableText.trim(); tableText.text != "" {
		if a.Table, err = l.p.table(tableText); err != nil {
			return nil, err
		}
	}
	if ctText = ctText.trim(); hasCT && ctText.text != "ct" {
		return nil, ctText.errorf("expected ct, not %q", ctText.text)
	}
	a.CT = hasCT
	if a.InPort == PortInPort && a.Table == CurrentTable {
		return nil, it.key.errorf("resubmit needs a port or a table, as in resubmit(,5)")
	}
	return a, nil
}

func (l *actionList) resubmitPort(a Resubmit, s span) (Action, error) {
	var err error
	if a.InPort, err = l.p.port(s); err != nil {
		return nil, err
	}
	if a.InPort == PortInPort {
		return nil, s.errorf("resubmit to in_port in the same table would never end")
	}
	return a, nil
}

func (l *actionList) group(it item) (Action, error) {
	id, err := number(it.value, maxGroup)
	return GroupAction{uint32(id)}, err
}

func (l *actionList) meter(it item) (Action, error) {
	id, err := number(it.value, maxMeter)
	if err == nil && id == 0 {
		err = it.value.errorf("meters begin with 1")
	}
	return MeterAction{uint32(id)}, err
}

func (l *actionList) conjunction(it item) (Action, error) {
	idText, rest, ok1 := it.value.cut(",")
	clauseText, nText, ok2 := rest.cut("/")
	if it.sep != '(' || !ok1 || !ok2 {
		return nil, it.key.errorf("expected conjunction(ID,CLAUSE/CLAUSES)")
	}
	id, err1 := number(idText.trim(), 1<<32-1)
	clause, err2 := number(clauseText.trim(), 64)
	n, err3 := number(nText.trim(), 64)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return nil, err
		}
	}
	switch {
	case n < 2:
		return nil, nText.errorf("a conjunction has 2 to 64 clauses")
	case clause < 1 || clause > n:
		return nil, clauseText.errorf("clause %d is not one of 1 to %d", clause, n)
	}
	return Conjunction{uint32(id), uint8(clause), uint8(n)}, nil
}

func (l *actionList) clone(it item) (Action, error) {
	if it.sep != '(' {
		return nil, it.key.errorf("expected clone(ACTIONS)")
	}
	inner, err := l.p.actionsBehind(it.value, l.depth+1, l.tags)
	if err != nil {
		return nil, err
	}
	return Clone{inner.actions}, nil
}

// notePadding is what OVS fills a note up to: 6 bytes, or 8 more as often as
// needed.
const notePadding = 6

func (l *actionList) note(it item) (Action, error) {
	b, err := dottedHex(it.value)
	for len(b) == 0 || len(b)%8 != notePadding {
		b = append(b, 0)
	}
	return Note{b}, err
}
