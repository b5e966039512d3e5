// Package flow is the language of the pipeline: fields, keys, matches,
// actions, flow entries, groups and meters, and the text in which ovs-ofctl
// writes them. That text is a public interface: dumps, traces, errors, tests
// and the --flows input all use the one printer and the one parser here.
//
//	table=L3Forwarding, priority=200,ip,nw_dst=10.10.1.0/24 actions=dec_ttl,output:"antrea-tun0"
//
// A match is two Keys, value and mask. What is known of a field stands in one row
// of the registry, and everybody reads it there.
//
//	entry.go, action.go, names.go   entries, groups and meters; actions; who is called what
//	registry.go, field.go, form.go  fields: the list of them, one of them, how its values are written
//	prereq.go                       what a match must say before a field has a meaning
//	key.go, value.go, match.go      a packet's fields as flat bytes; one value; what is asked of them
//	key_unsafe.go, key_words.go     a key's words, for lookups
//	extract.go, diff.go             from a packet to its key; how two keys differ
//	compose.go, first.go, port.go   from a key to a packet; what its description leaves out; ports
//
// Reading goes line, parts, then a program's entries, groups and meters, an entry's
// match and actions, then what they may do together:
//
//	scan.go, error.go                                a line's parts, and where one is wrong
//	parse_program.go, parse_entry.go                 a program, an entry
//	parse_group.go, parse_meter.go
//	parse_match.go, parse_value.go                   matches, values
//	parse_action.go, parse_set.go                    actions; those that write fields,
//	parse_ct.go, parse_learn.go                      and those with brackets in brackets
//	check.go                                         what an entry may do
//
// Another process gets all of it as JSON:
//
//	wire.go, parts.go                                entries and groups, some of several lines
//	wirekey.go                                       keys and matches, field by field
//
// Printing is print_entry.go, print_match.go and print_action.go. Reading and printing
// follow Open vSwitch 3.1 to the byte, in the form of OpenFlow 1.5 with names; the tests
// hold one against the other on a private switch.
// Of what Open vSwitch takes, three things are refused here on purpose: a field
// whose prerequisite is missing (it would be left out silently), a field given
// twice, and a number with a leading 0 (it would be octal).
//
// Nothing here is safe for concurrent change, and everything may be read by
// many goroutines at once.
package flow

// Match is what an entry asks of a packet: Key.And(Mask) == Value. Value has
// no bit outside Mask.
type Match struct {
	Value, Mask Key
}

// Entry is one flow entry. Its identity within a pipeline is table, priority
// and match.
type Entry struct {
	Table       uint8
	Priority    uint16 // 32768 when the text gives none
	Match       Match
	Cookie      uint64
	IdleTimeout uint16 // seconds, 0 for never
	HardTimeout uint16 // seconds, 0 for never
	SendFlowRem bool   // tell the controller when the entry goes; kept and printed
	Actions     []Action
}

// GroupType is how a group picks buckets.
type GroupType uint8

// Group types: GroupSelect picks one bucket by the packet's hash and the
// weights, GroupAll runs every bucket on a copy, GroupIndirect has one bucket,
// GroupFastFailover takes the first live one.
const (
	GroupAll GroupType = iota
	GroupSelect
	GroupIndirect
	GroupFastFailover
)

// Group is an OpenFlow group.
type Group struct {
	ID      uint32
	Type    GroupType
	Buckets []Bucket
}

// Bucket is one choice of a group.
type Bucket struct {
	ID     uint32
	Weight uint16 // select groups only; 1 when the text gives none
	// WatchPort is the port whose state decides whether a bucket of a
	// fast-failover group is live; 0 for none.
	WatchPort uint32
	Actions   []Action
}

// Meter is a rate limit: packets above it are dropped.
type Meter struct {
	ID    uint32
	PktPS bool // rate counts packets per second, else kilobits per second
	Burst bool // BurstSize is used
	Stats bool // as written; every meter counts here
	Bands []Band
}

// Band is one band of a meter; only type drop exists here.
type Band struct{ Rate, BurstSize uint32 }

// Program is a whole pipeline as data: its tables by name, entries, groups and
// meters. Packets enter at table First.
type Program struct {
	Names   *Names
	First   uint8
	Entries []*Entry
	Groups  []*Group
	Meters  []*Meter
}
