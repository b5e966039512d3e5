package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/wire"
)

// Entries with their counters as JSON. A switch may have a hundred thousand of them, so they are
// written and read without reflection:
//
//	{"entry":"table=4,priority=200,ip actions=drop","packets":7,"bytes":588,"durationNS":9000000000,"idleNS":1000000000}
//	{"entry":"table=9,…","packets":0,"bytes":0,"durationNS":5,"idleNS":5,"learned":true}
//
// A reader should take one value per line and call UnmarshalJSON on the line, because a decoder
// of a list scans each value twice more. Members in another order, or unknown ones, are also
// read, by reflection.

// wireFlowStats is FlowStats as JSON.
type wireFlowStats struct {
	Entry    wire.Entry    `json:"entry"`
	Packets  uint64        `json:"packets"`
	Bytes    uint64        `json:"bytes"`
	Duration time.Duration `json:"durationNS"`
	Idle     time.Duration `json:"idleNS"`
	Learned  bool          `json:"learned,omitzero"`
}

// AppendJSON appends the entry and its counters as JSON to b, in one line without a newline.
func (s *FlowStats) AppendJSON(b []byte) []byte {
	b = wire.Entry{Entry: s.Entry}.AppendJSON(append(b, `{"entry":`...))
	b = strconv.AppendUint(append(b, `,"packets":`...), s.Packets, 10)
	b = strconv.AppendUint(append(b, `,"bytes":`...), s.Bytes, 10)
	b = strconv.AppendInt(append(b, `,"durationNS":`...), int64(s.Duration), 10)
	b = strconv.AppendInt(append(b, `,"idleNS":`...), int64(s.Idle), 10)
	if s.Learned {
		b = append(b, `,"learned":true`...)
	}
	return append(b, '}')
}

// MarshalJSON implements json.Marshaler.
func (s FlowStats) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// UnmarshalJSON implements json.Unmarshaler. The error names the column in the entry,
// or the field.
func (s *FlowStats) UnmarshalJSON(b []byte) error {
	if got, entry, ok := plainFlowStats(b); ok {
		var e wire.Entry
		if err := e.UnmarshalJSON(entry); err != nil {
			return err
		}
		got.Entry = e.Entry
		*s = got
		return nil
	}
	var w wireFlowStats
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("counters of an entry: %w", err)
	}
	*s = FlowStats{w.Entry.Entry, w.Packets, w.Bytes, w.Duration, w.Idle, w.Learned}
	return nil
}

// plainFlowStats reads the output of AppendJSON. The caller decodes the returned entry. ok is
// false for any other text, valid or not.
func plainFlowStats(b []byte) (s FlowStats, entry []byte, ok bool) {
	r := lineReader{b, true}
	r.word(`{"entry":`)
	entry = r.text()
	r.word(`,"packets":`)
	s.Packets = r.number()
	r.word(`,"bytes":`)
	s.Bytes = r.number()
	r.word(`,"durationNS":`)
	s.Duration = time.Duration(r.positive())
	r.word(`,"idleNS":`)
	s.Idle = time.Duration(r.positive())
	if s.Learned = bytes.HasPrefix(r.b, []byte(",")); s.Learned {
		r.word(`,"learned":true`)
	}
	r.word("}")
	return s, entry, r.ok && len(r.b) == 0
}

// lineReader reads a line from its beginning. After the first mismatch, ok is false and every
// read returns nothing.
type lineReader struct {
	b  []byte
	ok bool
}

func (r *lineReader) fail() {
	r.b, r.ok = nil, false
}

// word reads a word.
func (r *lineReader) word(w string) {
	if len(r.b) < len(w) || string(r.b[:len(w)]) != w {
		r.fail()
		return
	}
	r.b = r.b[len(w):]
}

// text reads a JSON string and returns it with its quotes.
func (r *lineReader) text() []byte {
	for i := 1; i < len(r.b) && r.b[0] == '"'; i++ {
		switch r.b[i] {
		case '\\':
			i++
		case '"':
			s := r.b[:i+1]
			r.b = r.b[i+1:]
			return s
		}
	}
	r.fail()
	return nil
}

// number reads an unsigned number of up to 19 digits.
func (r *lineReader) number() (n uint64) {
	i := 0
	for ; i < len(r.b) && r.b[i]-'0' <= 9; i++ {
		n = 10*n + uint64(r.b[i]-'0')
	}
	if i == 0 || i > 19 || r.b[0] == '0' && i > 1 {
		r.fail()
		return 0
	}
	r.b = r.b[i:]
	return n
}

// positive is number for a value that must fit into 63 bits.
func (r *lineReader) positive() int64 {
	n := int64(r.number())
	if n < 0 {
		r.fail()
		return 0
	}
	return n
}

// wireLearned is Learned as JSON.
type wireLearned struct {
	Entry wire.Entry    `json:"entry"`
	Age   time.Duration `json:"ageNS"`
	Idle  time.Duration `json:"idleNS"`
}

// MarshalJSON implements json.Marshaler.
func (l Learned) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireLearned{wire.Entry{Entry: l.Entry}, l.Age, l.Idle})
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field.
func (l *Learned) UnmarshalJSON(b []byte) error {
	var w wireLearned
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("a learned entry: %w", err)
	}
	*l = Learned{w.Entry.Entry, w.Age, w.Idle}
	return nil
}

// Learned is a learned entry of another switch, or of a predecessor.
type Learned struct {
	*flow.Entry
	Age, Idle time.Duration // since its installation, and since its last packet
}
