package telemetry

import (
	"encoding/json"
	"fmt"

	"github.com/antrail/antrail/flow/wire"
	"github.com/antrail/antrail/packet"
)

// The switch's reports as JSON for another process. For most types the tags of their fields are
// enough. The others are here, in flowjson.go and in tracejson.go:
//
//	DropReason                 its name
//	CacheEvents, OffloadEvents an object by the names of events, those that are not 0
//	GroupStats                 the group as the line of dump-groups
//	WakeCounts                 a list; one that is too long is refused
//	PacketIn                   by its tags, and the entry as the line of dump-flows
//	DroppedPacket              its first bytes as head, in base64
//
// Times are in nanoseconds and their names end in NS. Decoders read another process's output:
//
//  1. They refuse an unknown reason, event, kind or field, and name it.
//  2. They ignore an unknown member of an object.
//  3. Their memory is proportional to the length of the input: at most a few hundred bytes per
//     byte.

// MarshalText implements encoding.TextMarshaler. The error is for a number that is not a reason.
func (r DropReason) MarshalText() ([]byte, error) {
	if r >= NumDropReasons {
		return nil, fmt.Errorf("no drop reason has the number %d", r)
	}
	return []byte(r.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error names the text.
func (r *DropReason) UnmarshalText(text []byte) error {
	for i := range dropTexts {
		if dropTexts[i].name == string(text) {
			*r = DropReason(i)
			return nil
		}
	}
	return fmt.Errorf("%.40q is not a drop reason", text)
}

// MarshalJSON implements json.Marshaler.
func (c CacheEvents) MarshalJSON() ([]byte, error) {
	return countsJSON(c[:], func(i int) string { return CacheEvent(i).String() })
}

// UnmarshalJSON implements json.Unmarshaler. The error names an unknown event.
func (c *CacheEvents) UnmarshalJSON(b []byte) error {
	return readCounts(b, c[:], func(i int) string { return CacheEvent(i).String() })
}

// MarshalJSON implements json.Marshaler.
func (c OffloadEvents) MarshalJSON() ([]byte, error) {
	return countsJSON(c[:], func(i int) string { return OffloadEvent(i).String() })
}

// UnmarshalJSON implements json.Unmarshaler. The error names an unknown event.
func (c *OffloadEvents) UnmarshalJSON(b []byte) error {
	return readCounts(b, c[:], func(i int) string { return OffloadEvent(i).String() })
}

// countsJSON is an object of the counts that are not 0, by the names of their events.
func countsJSON(counts []uint64, name func(i int) string) ([]byte, error) {
	all := map[string]uint64{}
	for i, n := range counts {
		if n != 0 {
			all[name(i)] = n
		}
	}
	return json.Marshal(all)
}

// readCounts is the inverse of countsJSON. The error names an unknown event.
func readCounts(b []byte, counts []uint64, name func(i int) string) error {
	var all map[string]uint64
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	read := make([]uint64, len(counts))
	for i := range read {
		read[i] = all[name(i)]
		delete(all, name(i))
	}
	for event := range all {
		return fmt.Errorf("events: %.40q is not a known event", event)
	}
	copy(counts, read)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler. It refuses a list that is too long.
func (c *WakeCounts) UnmarshalJSON(b []byte) error {
	var all []uint64
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("wakes: %w", err)
	}
	if len(all) > len(c) {
		return fmt.Errorf("wakes has %d elements; expected %d", len(all), len(c))
	}
	*c = WakeCounts{}
	copy(c[:], all)
	return nil
}

// converted is a list with its elements converted; nil stays nil.
func converted[A, B any](from []A, as func(A) B) []B {
	if from == nil {
		return nil
	}
	to := make([]B, len(from))
	for i := range from {
		to[i] = as(from[i])
	}
	return to
}

// wireGroupStats is GroupStats as JSON.
type wireGroupStats struct {
	Group   wire.Group    `json:"group"`
	Packets uint64        `json:"packets"`
	Bytes   uint64        `json:"bytes"`
	Buckets []BucketStats `json:"buckets"`
}

// MarshalJSON implements json.Marshaler.
func (s GroupStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireGroupStats{wire.Group{Group: s.Group}, s.Packets, s.Bytes, s.Buckets})
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field.
func (s *GroupStats) UnmarshalJSON(b []byte) error {
	var w wireGroupStats
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("counters of a group: %w", err)
	}
	*s = GroupStats{w.Group.Group, w.Packets, w.Bytes, w.Buckets}
	return nil
}

// wireDroppedPacket is DroppedPacket as JSON.
type wireDroppedPacket struct {
	At     int64         `json:"atNS"`
	Port   uint32        `json:"ofPort"`
	Reason DropReason    `json:"reason"`
	Table  uint8         `json:"table"`
	Entry  wire.Entry    `json:"entry,omitzero"`
	CT     DroppedCT     `json:"ct,omitzero"`
	Tunnel packet.Tunnel `json:"tunnel,omitzero"`
	Length int           `json:"length"`
	Head   []byte        `json:"head,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p DroppedPacket) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireDroppedPacket{p.At, p.Port, p.Reason, p.Table, wire.Entry{Entry: p.Entry}, p.CT, p.Tunnel, p.Length, p.Frame()})
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field.
func (p *DroppedPacket) UnmarshalJSON(b []byte) error {
	var w wireDroppedPacket
	err := json.Unmarshal(b, &w)
	if err == nil && len(w.Head) > DroppedBytes {
		err = fmt.Errorf("head has %d bytes; expected at most %d", len(w.Head), DroppedBytes)
	}
	if err != nil {
		return fmt.Errorf("a dropped packet: %w", err)
	}
	*p = DroppedPacket{At: w.At, Port: w.Port, Reason: w.Reason, Table: w.Table, Entry: w.Entry.Entry, CT: w.CT, Tunnel: w.Tunnel, Length: w.Length}
	p.kept = uint8(copy(p.head[:], w.Head))
	return nil
}

// plainPacketIn is PacketIn without its methods. wirePacketIn hides its field Entry.
type plainPacketIn PacketIn

type wirePacketIn struct {
	*plainPacketIn
	Entry wire.Entry `json:"entry,omitzero"`
}

// MarshalJSON implements json.Marshaler. The error is for a key with a bit outside all fields.
func (p PacketIn) MarshalJSON() ([]byte, error) {
	return json.Marshal(wirePacketIn{(*plainPacketIn)(&p), wire.Entry{Entry: p.Entry}})
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field.
func (p *PacketIn) UnmarshalJSON(b []byte) error {
	var got PacketIn
	w := wirePacketIn{plainPacketIn: (*plainPacketIn)(&got)}
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("a packet-in: %w", err)
	}
	got.Entry = w.Entry.Entry
	*p = got
	return nil
}

type wireRest struct {
	Table   uint8         `json:"table"`
	Cookie  uint64        `json:"cookie,omitzero"`
	Actions []wire.Action `json:"actions"`
}

// MarshalJSON implements json.Marshaler.
func (r Rest) MarshalJSON() ([]byte, error) {
	w := wireRest{Table: r.Table, Cookie: r.Cookie}
	for _, a := range r.Actions {
		w.Actions = append(w.Actions, wire.Action{Action: a})
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler. The error names the action.
func (r *Rest) UnmarshalJSON(b []byte) error {
	var w wireRest
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("the rest of a walk: %w", err)
	}
	*r = Rest{Table: w.Table, Cookie: w.Cookie}
	for _, a := range w.Actions {
		r.Actions = append(r.Actions, a.Action)
	}
	return nil
}
