package learn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// Expectation is a step of a check: a packet to send with its expected result, a time that
// passes, or a restart. The packets come from the lesson, not from the learner's file.
// Empty fields are not checked.
type Expectation struct {
	Send string `json:"send"` // name of the packet
	// Times sends it several times, from consecutive client ports.
	Times int `json:"times"`

	Leaves string `json:"leaves"` // by exactly these ports: web-a, or web-a,antrea-tc-tap2
	On     string `json:"node"`   // of this Node
	As     string `json:"as"`     // with a match on this
	Mark   uint32 `json:"mark"`   // with this pkt_mark
	// Spread are ports. Each gets at least one of Times packets, and no other port gets
	// any.
	Spread string `json:"spread"`
	// Together says that all of Times leave by the same port.
	Together bool `json:"together"`
	// Like is an earlier packet: this one leaves by the same ports.
	Like string `json:"like"`

	Dropped string `json:"dropped"` // in this table
	Via     string `json:"via"`     // it left by these ports and came back; "-" is none
	Agent   bool   `json:"agent"`   // it goes to the agent, as a packet-in

	Through []string `json:"through"` // tables that it passes
	Around  []string `json:"around"`  // tables that it does not pass
	Learns  bool     `json:"learns"`  // it makes an entry
	CT      string   `json:"ct"`      // the answer of the first ct() includes this: +est+rpl

	Turn    string `json:"turn"`    // turn the clock on by this: 301s
	Restart string `json:"restart"` // "kept" or "lost": the connections

	// Why is a hint for the learner if the step fails.
	Why string `json:"why"`
}

// Result is the result of a check.
type Result struct {
	// Failure says what is wrong; "" if nothing is.
	Failure string
	Steps   int // passed, before the failure
}

// Run runs a check over files. The error is about files that cannot be read, with file and
// line.
func (l *Lesson) Run(f *Files) (*Result, error) {
	start, err := l.Start()
	if err != nil {
		return nil, err
	}
	box, err := NewSandbox(l, f)
	if err != nil {
		return nil, err
	}
	defer box.Close()
	packets, err := parsePackets(start)
	if err != nil {
		return nil, err
	}
	c := &checking{box: box, packets: packets, files: f, start: start, first: map[string]*Way{}}
	for i := range l.Check {
		failure, err := c.step(&l.Check[i])
		if err != nil || failure != "" {
			return &Result{failure, i}, err
		}
	}
	return &Result{Steps: len(l.Check)}, nil
}

// checking is a running check.
type checking struct {
	box          *Sandbox
	packets      []aPacket
	files, start *Files
	first        map[string]*Way // the first way of each packet
}

// step runs a step. failure says what differs from the expectation.
func (c *checking) step(e *Expectation) (failure string, err error) {
	if e.Turn != "" {
		d, err := time.ParseDuration(e.Turn)
		c.box.Turn(d)
		return "", err
	}
	if e.Restart != "" {
		return "", c.box.Restart(e.Restart == "kept")
	}
	p, err := findPacket(c.packets, e.Send)
	if err != nil {
		return "", err
	}
	ports := map[string]*Way{}
	for i := range max(1, e.Times) {
		w, err := c.box.Send(p, i)
		if err != nil {
			return "", err
		}
		if c.first[e.Send] == nil {
			c.first[e.Send] = w
		}
		ports[strings.Join(w.ports(), ",")] = w
		if failure := e.differs(w, c.first[e.Like]); failure != "" {
			return c.explain(e, w, failure)
		}
		if failure := c.box.luck(w); failure != "" {
			return failure, nil
		}
	}
	if failure, w := e.spread(ports); failure != "" {
		return c.explain(e, w, failure)
	}
	return "", nil
}

// ports are the ports by which a way left, sorted by name.
func (w *Way) ports() (names []string) {
	for _, l := range w.Left {
		names = append(names, l.Port)
	}
	slices.Sort(names)
	return names
}

// differs says how a way differs from the expectation; "" if it does not.
func (e *Expectation) differs(w, like *Way) string {
	for _, differs := range []func(*Way) string{e.dropsElsewhere, e.leavesElsewhere, e.leavesOtherwise, e.passesOther, e.tracksOther, e.learnsNothing} {
		if failure := differs(w); failure != "" {
			return failure
		}
	}
	if like != nil && !slices.Equal(like.ports(), w.ports()) {
		return fmt.Sprintf("%s was to leave by %s, as %s did", e.Send, strings.Join(like.ports(), ","), e.Like)
	}
	return ""
}

func (e *Expectation) dropsElsewhere(w *Way) string {
	last := w.last()
	v := &last.Trace.Verdict
	switch {
	case e.Dropped != "" && (v.Reason == telemetry.NotDropped || tableName(last.Trace.Names, v.Table) != e.Dropped):
		return fmt.Sprintf("%s was to be dropped in table %s", e.Send, e.Dropped)
	case e.Agent && !v.PacketIn:
		return fmt.Sprintf("%s was to go to the agent, as a packet-in", e.Send)
	}
	return ""
}

// last is the last walk.
func (w *Way) last() *Hop { return &w.Hops[len(w.Hops)-1] }

func (e *Expectation) leavesElsewhere(w *Way) string {
	if e.Leaves == "" {
		return ""
	}
	want := strings.Split(e.Leaves, ",")
	slices.Sort(want)
	if slices.Equal(want, w.ports()) && (e.On == "" || w.Left[0].Node == e.On) {
		return ""
	}
	text := fmt.Sprintf("%s was to leave by %s", e.Send, strings.Join(want, " and "))
	if e.On != "" {
		text += " of " + e.On
	}
	return text
}

func (e *Expectation) leavesOtherwise(w *Way) string {
	if e.As == "" && e.Mark == 0 {
		return ""
	}
	names := w.last().Trace.Names
	m, err := parse.Match(e.As, names)
	if err != nil {
		return err.Error()
	}
	for i := range w.Left {
		l := &w.Left[i]
		if texts := unmet(&m, keyOf(l.Frame), names); len(texts) > 0 {
			text := strings.NewReplacer("it asks for ", "", "the packet has ", "it has ").Replace(strings.Join(texts, "; "))
			return fmt.Sprintf("%s was to leave with %s", e.Send, text)
		}
		if e.Mark != 0 && l.Mark != e.Mark {
			return fmt.Sprintf("%s was to leave with pkt_mark %#x, it has %#x", e.Send, e.Mark, l.Mark)
		}
	}
	return ""
}

func (e *Expectation) passesOther(w *Way) string {
	if via := strings.Join(w.Via, ","); e.Via != "" && strings.TrimPrefix(e.Via, "-") != via {
		return fmt.Sprintf("%s was to go by %q on its way, and went by %q", e.Send, strings.TrimPrefix(e.Via, "-"), via)
	}
	passed := map[string]bool{}
	for i := range w.Hops {
		for _, v := range visits(w.Hops[i].Trace) {
			passed[v.table] = true
		}
	}
	for _, t := range e.Through {
		if !passed[t] {
			return fmt.Sprintf("%s was to pass table %s, and it never came there", e.Send, t)
		}
	}
	for _, t := range e.Around {
		if passed[t] {
			return fmt.Sprintf("%s was not to come to table %s, and it did", e.Send, t)
		}
	}
	return ""
}

func (e *Expectation) tracksOther(w *Way) string {
	if e.CT == "" {
		return ""
	}
	m, err := parse.Match("ct_state="+e.CT, nil)
	if err != nil {
		return err.Error()
	}
	value, mask := m.Get(flow.CTState)
	for _, st := range w.Hops[0].Trace.Steps {
		if st.Kind != telemetry.StepCT {
			continue
		}
		if uint64(st.Meta.State)&mask.Lo == value.Lo {
			return ""
		}
		return fmt.Sprintf("conntrack was to say %s of %s, and said %s", e.CT, e.Send, states(st.Meta.State))
	}
	return fmt.Sprintf("conntrack was to say %s of %s, and was never asked", e.CT, e.Send)
}

func (e *Expectation) learnsNothing(w *Way) string {
	for _, st := range w.Hops[0].Trace.Steps {
		if st.Kind == telemetry.StepLearn {
			return ""
		}
	}
	if !e.Learns {
		return ""
	}
	return e.Send + " was to make an entry, by the action learn"
}

// spread checks how several packets were spread over ports. w is a way that is wrong.
func (e *Expectation) spread(ports map[string]*Way) (failure string, w *Way) {
	var got []string
	for name := range ports {
		got = append(got, name)
		w = ports[name]
	}
	slices.Sort(got)
	if e.Together && len(got) > 1 {
		return fmt.Sprintf("%d connections of one client were to leave by one port, and left by %s", e.Times, strings.Join(got, " and ")), w
	}
	if e.Spread == "" {
		return "", nil
	}
	want := strings.Split(e.Spread, ",")
	slices.Sort(want)
	for _, name := range got {
		if !slices.Contains(want, name) {
			return fmt.Sprintf("%d connections were to leave by %s, and one did not", e.Times, strings.Join(want, " and ")), ports[name]
		}
	}
	if len(got) < len(want) {
		return fmt.Sprintf("%d connections were to leave by %s, and all of them left by %s", e.Times, strings.Join(want, " and "), strings.Join(got, " and ")), w
	}
	return "", nil
}
