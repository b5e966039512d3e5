package parse

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Each action's word has a function that reads it. flow/validate.go decides which actions a match
// allows, so that it also checks entries made by code.

// Actions reads a list of actions such as dec_ttl,output:3; "drop" is an empty list. There is no
// match, so prerequisites are not checked.
func Actions(text string, n *flow.Names) ([]flow.Action, error) {
	s := span{text, 0}
	if err := checkLength(s); err != nil {
		return nil, err
	}
	p := &parser{names: n}
	list, err := p.actions(s, 0)
	if err != nil {
		return nil, err
	}
	if err := list.located(flow.CheckActions(list.actions)); err != nil {
		return nil, err
	}
	return list.actions, nil
}

// Action reads one action. It does not check the action's place, so it accepts goto_table, which
// no list of actions alone may have.
func Action(text string, n *flow.Names) (flow.Action, error) {
	s := span{text, 0}
	if err := checkLength(s); err != nil {
		return nil, fmt.Errorf("action: %w", err)
	}
	list, err := (&parser{names: n}).actions(s, 0)
	if err != nil {
		return nil, fmt.Errorf("action %.60q: %w", text, err)
	}
	if len(list.actions) != 1 {
		return nil, fmt.Errorf("action %.60q: expected one action, not %d", text, len(list.actions))
	}
	return list.actions[0], nil
}

// maxDepth is the deepest nesting of clone and ct.
const maxDepth = 8

// actionList has actions and the place of each in the text. Its memory, except for the actions,
// is used again by the next list of its depth.
type actionList struct {
	p       *parser
	depth   int
	tags    int // VLAN tags known to exist; mod_vlan_vid pushes one if there is none
	actions []flow.Action
	so      []flow.Action // so far, while the list is read
	at      []span
	drop    bool
}

// located adds the column of the wrong action to an error.
func (l *actionList) located(err error) error {
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*flow.ActionError](err); ok {
		return l.at[wrong.Index].errorf("%s", wrong.Msg)
	}
	return err
}

// actions reads a list for packets without known properties. depth is the number of enclosing
// lists.
func (p *parser) actions(s span, depth int) (*actionList, error) {
	return p.actionsBehind(s, depth, 0)
}

// actionsBehind reads a list for packets known to have tags VLAN tags.
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
	l.actions = p.keep(l.so)
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

func (l *actionList) add(it item, a flow.Action) {
	l.tags = flow.TagsAfter(a, l.tags)
	l.so = append(l.so, a)
	l.at = append(l.at, it.key)
}

// actionParser reads one action. It may add actions itself and return nil.
type actionParser func(*actionList, item) (flow.Action, error)

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
		"dec_ttl":        plain(flow.DecTTL{}),
		"push_vlan":      (*actionList).pushVLAN,
		"pop_vlan":       plain(flow.PopVLAN{}),
		"strip_vlan":     plain(flow.PopVLAN{}),
		"ct":             (*actionList).ct,
		"ct_clear":       plain(flow.CTClear{}),
		"nat":            (*actionList).strayNAT,
		"group":          (*actionList).group,
		"conjunction":    (*actionList).conjunction,
		"meter":          (*actionList).meter,
		"clone":          (*actionList).clone,
		"note":           (*actionList).note,
		"learn":          (*actionList).learn,
		"mod_dl_src":     set(flow.EthSrc),
		"mod_dl_dst":     set(flow.EthDst),
		"mod_nw_src":     set(flow.IPSrc),
		"mod_nw_dst":     set(flow.IPDst),
		"mod_nw_ecn":     set(flow.IPECN),
		"mod_nw_ttl":     set(flow.IPTTL),
		"mod_vlan_pcp":   (*actionList).modVLANPCP,
		"set_tunnel":     set(flow.TunID),
		"set_tunnel64":   set(flow.TunID),
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
func plain(a flow.Action) actionParser {
	return func(_ *actionList, it item) (flow.Action, error) {
		if it.sep == '(' && it.value.text == "" {
			return a, nil
		}
		return a, it.bare()
	}
}

func unsupported(_ *actionList, it item) (flow.Action, error) {
	return nil, it.key.errorf("action %s is not supported by this switch", it.key.text)
}

// set is the parser of OpenFlow 1.0's mod_… actions, which are short for set_field.
func set(id flow.FieldID) actionParser {
	return func(l *actionList, it item) (flow.Action, error) {
		return l.setWhole(id, it.value)
	}
}

func (l *actionList) setWhole(id flow.FieldID, s span) (flow.Action, error) {
	f := flow.FieldByID(id)
	v, err := f.ParseExact(s.text)
	return flow.SetField{Field: id, Value: v, Mask: flow.Ones(f.Bits)}, s.placed(err)
}

// portAction reads a port as an output to it: 3, LOCAL, "web".
func (l *actionList) portAction(it item) error {
	if it.sep == 0 {
		if port, err := l.knownPort(it.key); err == nil {
			l.add(it, outputTo(port))
			return nil
		}
	}
	return it.key.errorf("unknown action %q%s", it.key.text, flow.Suggest(it.key.text, slices.Collect(maps.Keys(actionWords))))
}

// knownPort is port for a bare word. It makes no new name, because the word may be a misspelt
// action.
func (l *actionList) knownPort(s span) (uint32, error) {
	p := *l.p
	p.grow = strings.HasPrefix(s.text, `"`) && p.grow
	port, err := p.port(s)
	l.p.nextPort = p.nextPort
	return port, err
}

// outputTo is the action that sends to a port. Reserved ports have actions of their own.
func outputTo(port uint32) flow.Action {
	switch port {
	case flow.PortInPort:
		return flow.OutputInPort{}
	case flow.PortNormal:
		return flow.Normal{}
	case flow.PortFlood:
		return flow.Flood{}
	case flow.PortAll:
		return flow.All{}
	case flow.PortController:
		return flow.Controller{MaxLen: 65535, Reason: "action"}
	}
	return flow.Output{Port: port}
}

func (l *actionList) output(it item) (flow.Action, error) {
	if it.sep == '(' {
		return nil, it.value.errorf("output(…) with max_len is not supported by this switch; expected output:PORT")
	}
	if strings.HasSuffix(it.value.text, "]") || flow.FieldByName(it.value.text) != nil && it.value.text != "in_port" {
		src, err := subfield(it.value)
		return flow.OutputReg{Src: src}, err
	}
	if it.value.text == "" {
		return nil, it.value.errorf("expected a port behind output:")
	}
	port, err := l.p.port(it.value)
	if err == nil && (port == flow.PortTable || port == flow.PortNone) {
		err = it.value.errorf("output to %s is not possible", it.value.text)
	}
	return outputTo(port), err
}

// controllerReasons are the reasons of packet-in (OpenFlow 1.4, 7.4.1).
var controllerReasons = []string{"no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"}

func (l *actionList) controller(it item) (flow.Action, error) {
	a := flow.Controller{MaxLen: 65535, Reason: "action"}
	if it.sep != '(' {
		if it.sep == 0 || it.value.text == "" {
			return a, nil
		}
		err := number16(it, &a.MaxLen)
		return a, err
	}
	err := each(it.value, func(o item) error { return controllerOption(&a, o) })
	return a, err
}

func controllerOption(a *flow.Controller, o item) (err error) {
	switch o.key.text {
	case "reason":
		a.Reason, err = oneOf(o.value, controllerReasons)
	case "max_len":
		err = number16(o, &a.MaxLen)
	case "id":
		err = number16(o, &a.ID)
	case "userdata":
		a.UserData, err = dottedHex(o.value)
	case "pause":
		a.Pause, err = true, o.bare()
	case "meter_id":
		a.MeterID, err = number(o.value, maxMeter)
	default:
		err = o.key.errorf("unknown controller option %q; expected reason, max_len, id, userdata, pause or meter_id", o.key.text)
	}
	return err
}

// oneOf reads one of a few words.
func oneOf(s span, words []string) (string, error) {
	if !slices.Contains(words, s.text) {
		return "", s.errorf("%q is unknown; expected %s", s.text, strings.Join(words, ", "))
	}
	return s.text, nil
}

// dottedHex reads bytes: 01.02.ff, dots are optional.
func dottedHex(s span) ([]byte, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(s.text, ".", ""))
	if err != nil {
		return nil, s.errorf("expected bytes in hexadecimal such as 01.02, not %q", s.text)
	}
	return b, nil
}

func (l *actionList) gotoTable(it item) (flow.Action, error) {
	id, err := l.p.table(it.value)
	return flow.GotoTable{Table: id}, err
}

func (l *actionList) resubmit(it item) (flow.Action, error) {
	a := flow.Resubmit{InPort: flow.PortInPort, Table: flow.CurrentTable}
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
	if a.InPort == flow.PortInPort && a.Table == flow.CurrentTable {
		return nil, it.key.errorf("resubmit needs a port or a table, as in resubmit(,5)")
	}
	return a, nil
}

func (l *actionList) resubmitPort(a flow.Resubmit, s span) (flow.Action, error) {
	var err error
	if a.InPort, err = l.p.port(s); err != nil {
		return nil, err
	}
	if a.InPort == flow.PortInPort {
		return nil, s.errorf("resubmit to in_port in the same table would never end")
	}
	return a, nil
}

func (l *actionList) group(it item) (flow.Action, error) {
	id, err := number(it.value, maxGroup)
	return flow.GroupAction{ID: id}, err
}

func (l *actionList) meter(it item) (flow.Action, error) {
	id, err := number(it.value, maxMeter)
	if err == nil && id == 0 {
		err = it.value.errorf("meters begin with 1")
	}
	return flow.MeterAction{ID: id}, err
}

func (l *actionList) conjunction(it item) (flow.Action, error) {
	idText, rest, ok1 := it.value.cut(",")
	clauseText, nText, ok2 := rest.cut("/")
	if it.sep != '(' || !ok1 || !ok2 {
		return nil, it.key.errorf("expected conjunction(ID,CLAUSE/CLAUSES)")
	}
	id, err1 := number[uint32](idText.trim(), 1<<32-1)
	clause, err2 := number[uint8](clauseText.trim(), 64)
	n, err3 := number[uint8](nText.trim(), 64)
	switch err := cmp.Or(err1, err2, err3); {
	case err != nil:
		return nil, err
	case n < 2:
		return nil, nText.errorf("a conjunction has 2 to 64 clauses")
	case clause < 1 || clause > n:
		return nil, clauseText.errorf("clause %d is not one of 1 to %d", clause, n)
	}
	return flow.Conjunction{ID: id, Clause: clause, N: n}, nil
}

func (l *actionList) clone(it item) (flow.Action, error) {
	if it.sep != '(' {
		return nil, it.key.errorf("expected clone(ACTIONS)")
	}
	inner, err := l.p.actionsBehind(it.value, l.depth+1, l.tags)
	if err != nil {
		return nil, err
	}
	return flow.Clone{Actions: inner.actions}, nil
}

// notePadding is the size to which OVS fills a note: 6 bytes, and 8 more as often as needed.
const notePadding = 6

func (l *actionList) note(it item) (flow.Action, error) {
	b, err := dottedHex(it.value)
	for len(b) == 0 || len(b)%8 != notePadding {
		b = append(b, 0)
	}
	return flow.Note{Bytes: b}, err
}
