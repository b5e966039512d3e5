package telemetry

import (
	"encoding/json"
	"fmt"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/wire"
	"github.com/antrail/antrail/packet"
)

// The switch's reports as JSON for another process. For most types the tags of their fields are
// enough. The others are here, in flowjson.go and in tracejson.go:
//
//	DropReason                 its name
//	CacheStats, OffloadStats  events as an object by name, those that are not 0
//	GroupStats, MeterStats     the group as the line of dump-groups, the meter as an object
//	WorkerStats                by its tags; a histogram that is too long is refused
//	PortSecurity               MAC addresses as text
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

// eventCounts is the counts that are not 0, by the names of their events.
func eventCounts(counts []uint64, name func(i int) string) map[string]uint64 {
	all := map[string]uint64{}
	for i, n := range counts {
		if n != 0 {
			all[name(i)] = n
		}
	}
	return all
}

// readCounts is the inverse of eventCounts. The error names an unknown event.
func readCounts(all map[string]uint64, counts []uint64, name func(i int) string) error {
	known := 0
	for i := range counts {
		if n, ok := all[name(i)]; ok {
			counts[i] = n
			known++
		}
	}
	if known == len(all) {
		return nil
	}
	for i := range counts {
		delete(all, name(i))
	}
	for event := range all {
		return fmt.Errorf("events: %.40q is not a known event", event)
	}
	return nil
}

func cacheEventName(i int) string   { return CacheEvent(i).String() }
func offloadEventName(i int) string { return OffloadEvent(i).String() }

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

// In the types below, the plain type is the exported one without its methods. The wire type hides
// the fields whose JSON form differs.

type plainCacheStats CacheStats

type wireCacheStats struct {
	*plainCacheStats
	Events map[string]uint64 `json:"events"`
}

// MarshalJSON implements json.Marshaler.
func (s CacheStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireCacheStats{(*plainCacheStats)(&s), eventCounts(s.Events[:], cacheEventName)})
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field or the event.
func (s *CacheStats) UnmarshalJSON(b []byte) error {
	var got CacheStats
	w := wireCacheStats{plainCacheStats: (*plainCacheStats)(&got)}
	err := json.Unmarshal(b, &w)
	if err == nil {
		err = readCounts(w.Events, got.Events[:], cacheEventName)
	}
	if err != nil {
		return fmt.Errorf("counters of the cache: %w", err)
	}
	*s = got
	return nil
}

type plainOffloadStats OffloadStats

type wireOffloadStats struct {
	*plainOffloadStats
	Events map[string]uint64 `json:"events"`
}

// MarshalJSON implements json.Marshaler.
func (s OffloadStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireOffloadStats{(*plainOffloadStats)(&s), eventCounts(s.Events[:], offloadEventName)})
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field or the event.
func (s *OffloadStats) UnmarshalJSON(b []byte) error {
	var got OffloadStats
	w := wireOffloadStats{plainOffloadStats: (*plainOffloadStats)(&got)}
	err := json.Unmarshal(b, &w)
	if err == nil {
		err = readCounts(w.Events, got.Events[:], offloadEventName)
	}
	if err != nil {
		return fmt.Errorf("counters of the offload: %w", err)
	}
	*s = got
	return nil
}

type plainWorkerStats WorkerStats

type wireWorkerStats struct {
	*plainWorkerStats
	Wakes []uint64 `json:"wakes"`
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field.
func (s *WorkerStats) UnmarshalJSON(b []byte) error {
	var got WorkerStats
	w := wireWorkerStats{plainWorkerStats: (*plainWorkerStats)(&got)}
	err := json.Unmarshal(b, &w)
	if err == nil && len(w.Wakes) > WakeBuckets {
		err = fmt.Errorf("wakes has %d elements; expected %d", len(w.Wakes), WakeBuckets)
	}
	if err != nil {
		return fmt.Errorf("counters of a worker: %w", err)
	}
	copy(got.Wakes[:], w.Wakes)
	*s = got
	return nil
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

// wireMeterStats is MeterStats as JSON.
type wireMeterStats struct {
	Meter   *wireMeter `json:"meter"`
	Packets uint64     `json:"packets"`
	Bytes   uint64     `json:"bytes"`
	Dropped []uint64   `json:"dropped"`
}

// wireMeter is flow.Meter with other names.
type wireMeter struct {
	ID    uint32     `json:"id"`
	PktPS bool       `json:"pktps"`
	Burst bool       `json:"burst,omitzero"`
	Stats bool       `json:"stats,omitzero"`
	Bands []wireBand `json:"bands"`
}

type wireBand struct {
	Rate      uint32 `json:"rate"`
	BurstSize uint32 `json:"burstSize,omitzero"`
}

// MarshalJSON implements json.Marshaler.
func (s MeterStats) MarshalJSON() ([]byte, error) {
	w := wireMeterStats{Packets: s.Packets, Bytes: s.Bytes, Dropped: s.Dropped}
	if m := s.Meter; m != nil {
		w.Meter = &wireMeter{m.ID, m.PktPS, m.Burst, m.Stats, converted(m.Bands, func(b flow.Band) wireBand { return wireBand(b) })}
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler. The error names the field.
func (s *MeterStats) UnmarshalJSON(b []byte) error {
	var w wireMeterStats
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("counters of a meter: %w", err)
	}
	*s = MeterStats{Packets: w.Packets, Bytes: w.Bytes, Dropped: w.Dropped}
	if m := w.Meter; m != nil {
		s.Meter = &flow.Meter{
			ID: m.ID, PktPS: m.PktPS, Burst: m.Burst, Stats: m.Stats,
			Bands: converted(m.Bands, func(b wireBand) flow.Band { return flow.Band(b) }),
		}
	}
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
