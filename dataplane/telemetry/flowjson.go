package telemetry

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/wire"
)

// Entries with their counters as JSON. A switch may have a hundred thousand of them, so it writes
// them without reflection:
//
//	{"entry":"table=4,priority=200,ip actions=drop","packets":7,"bytes":588,"durationNS":9000000000,"idleNS":1000000000}
//	{"entry":"table=9,…","packets":0,"bytes":0,"durationNS":5,"idleNS":5,"learned":true}
//
// A reader should take one value per line and call UnmarshalJSON on the line, because a decoder
// of a list scans each value twice more.

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
	var w wireFlowStats
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("counters of an entry: %w", err)
	}
	*s = FlowStats{w.Entry.Entry, w.Packets, w.Bytes, w.Duration, w.Idle, w.Learned}
	return nil
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
