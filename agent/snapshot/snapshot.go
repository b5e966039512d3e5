package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// A flow snapshot is what the switch of an agent held, so that the next agent
// forwards by it until it has heard of the objects. As text:
//
//	antrail flow snapshot 1 SHA256     of all that follows
//	{…}                                Head as JSON, in one line
//	group group_id=9,type=select,…     a line of dump-groups
//	flow table=4, priority=190,…       a line of dump-flows
//	learned 20s 5s table=9, …          likewise; its age, and the time without a packet
//
// Lines have numbers for tables and ports, so that no name can make them say
// something else. What is too long for a line, as a group of a thousand
// endpoints, goes on in lines of the same identity.

// Snapshot is what is kept.
type Snapshot struct {
	Head
	Entries []*flow.Entry // without those of Learned
	Groups  []*flow.Group
	Learned []telemetry.Learned // by packets
}

// Head is what of a snapshot is no flow, group or learned entry.
type Head struct {
	Boot   string // the machine's, in hexadecimal
	Config string // the configuration that it belongs to: Identity
	Taken  int64  // by bootClock
	First  uint8  // the table that packets enter at
	// Tables and PortNames are names in dumps; Ports the pods' ports.
	Tables    map[uint8]string
	PortNames map[uint32]string
	Ports     []Port
	Meters    []*flow.Meter
	Memory    *control.Memory
}

// Port is a pod's port.
type Port struct {
	config.Port
	OneWay bool // as config.Port.NoReturn
}

// fileSchema begins the file. Its number changes with what the rest means.
const fileSchema = "antrail flow snapshot 1 "

// Encode is the file.
func (s *Snapshot) Encode() ([]byte, error) {
	head, err := json.Marshal(&s.Head)
	if err != nil {
		return nil, err
	}
	b := append(head, '\n')
	for _, g := range s.Groups {
		b = appendGroup(b, g)
	}
	for _, e := range s.Entries {
		b = appendEntry(append(b, "flow"...), e)
	}
	for _, l := range s.Learned {
		b = appendLearned(b, &l)
	}
	return append([]byte(fileSchema+checksum(b)+"\n"), b...), nil
}

func checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// appendGroup appends the lines of a group.
func appendGroup(b []byte, g *flow.Group) []byte {
	for part := range g.Parts() {
		b = append(part.AppendAs(append(b, "group"...), flow.Format{Loads: true}), '\n')
	}
	return b
}

// appendEntry appends the lines of an entry, whose first word is there already. Only
// conjunctions become so many that they need several lines; what learns makes none.
func appendEntry(b []byte, e *flow.Entry) []byte {
	first := true
	for part := range e.Parts() {
		if !first {
			b = append(b, "flow"...)
		}
		b, first = append(part.AppendText(b, flow.Format{Loads: true}), '\n'), false
	}
	return b
}

// appendLearned appends the line of what packets learned.
func appendLearned(b []byte, l *telemetry.Learned) []byte {
	return appendEntry(fmt.Appendf(b, "learned %v %v", l.Age, l.Idle), l.Entry)
}

// Parse reads a file, of which nothing is believed that is not checked.
// Errors name the line.
func Parse(b []byte) (*Snapshot, error) {
	schema, b, ok := bytes.Cut(b, []byte("\n"))
	sum, known := strings.CutPrefix(string(schema), fileSchema)
	switch {
	case !known:
		return nil, errors.New("it has another schema, or none")
	case !ok || sum != checksum(b):
		return nil, errors.New("it is torn: its checksum is wrong")
	}
	head, b, _ := bytes.Cut(b, []byte("\n"))
	s := &Snapshot{}
	if err := json.Unmarshal(head, &s.Head); err != nil {
		return nil, fmt.Errorf("line 2: %w", err)
	}
	if err := s.checkHead(); err != nil {
		return nil, fmt.Errorf("line 2: %w", err)
	}
	for no := 3; len(b) > 0; no++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		if err := s.line(string(line)); err != nil {
			return nil, fmt.Errorf("line %d: %w", no, err)
		}
	}
	return s, nil
}

// checkHead checks what the lines below do not.
func (s *Snapshot) checkHead() error {
	if s.Memory == nil || slices.Contains(s.Meters, nil) {
		return errors.New("something is missing")
	}
	for _, m := range s.Meters {
		if m.ID == 0 || len(m.Bands) == 0 {
			return fmt.Errorf("meter %d has no number or no band", m.ID)
		}
	}
	for _, p := range s.Ports {
		if p.Name == "" || p.Link == "" || p.OFPort == 0 || p.OFPort >= 0xff00 {
			return fmt.Errorf("port %q has no name, link or number", p.Name)
		}
	}
	return nil
}

// line reads one line.
func (s *Snapshot) line(line string) error {
	kind, text, _ := strings.Cut(line, " ")
	switch kind {
	case "group":
		g, err := parse.Group(text, nil)
		if err != nil {
			return err
		}
		return s.addGroup(g)
	case "flow":
		e, err := parse.Entry(text, nil)
		if err != nil {
			return err
		}
		return s.addEntry(e)
	case "learned":
		return s.learnedLine(text)
	}
	return fmt.Errorf("%.20q is no group, flow or learned", kind)
}

// addGroup adds a group, or buckets to the one of its line before.
func (s *Snapshot) addGroup(g *flow.Group) error {
	if n := len(s.Groups); n > 0 && s.Groups[n-1].ID == g.ID {
		return s.Groups[n-1].Join(g)
	}
	s.Groups = append(s.Groups, g)
	return nil
}

// addEntry adds an entry, or conjunctions to the one of its line before.
func (s *Snapshot) addEntry(e *flow.Entry) error {
	if n := len(s.Entries); n > 0 && s.Entries[n-1].Identity() == e.Identity() {
		return s.Entries[n-1].Join(e)
	}
	s.Entries = append(s.Entries, e)
	return nil
}

// learnedLine reads AGE IDLE ENTRY.
func (s *Snapshot) learnedLine(text string) error {
	age, text, _ := strings.Cut(text, " ")
	idle, text, _ := strings.Cut(text, " ")
	l := telemetry.Learned{}
	for _, d := range []struct {
		text string
		to   *time.Duration
	}{{age, &l.Age}, {idle, &l.Idle}} {
		v, err := time.ParseDuration(d.text)
		if err != nil || v < 0 {
			return fmt.Errorf("%s is no time", strconv.Quote(d.text))
		}
		*d.to = v
	}
	e, err := parse.Entry(text, nil)
	if err != nil {
		return err
	}
	l.Entry = e
	s.Learned = append(s.Learned, l)
	return nil
}

// names are the names of tables and ports in dumps.
func (s *Snapshot) names() *flow.Names {
	n := flow.NewNames()
	for _, id := range slices.Sorted(maps.Keys(s.Tables)) {
		n.SetTable(id, s.Tables[id])
	}
	for _, no := range slices.Sorted(maps.Keys(s.PortNames)) {
		n.SetPort(no, s.PortNames[no])
	}
	return n
}

// Program is the snapshot without what packets learned.
func (s *Snapshot) Program() *flow.Program {
	return &flow.Program{Names: s.names(), First: s.First, Entries: s.Entries, Groups: s.Groups, Meters: s.Meters}
}

// PodPorts are the pods' ports.
func (s *Snapshot) PodPorts() []config.Port {
	all := []config.Port{}
	for _, p := range s.Ports {
		p.NoReturn = p.OneWay
		all = append(all, p.Port)
	}
	return all
}
