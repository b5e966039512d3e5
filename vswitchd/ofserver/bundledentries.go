package ofserver

import (
	"encoding/binary"
	"iter"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// A bundle keeps its messages until the commit. If it only adds entries, it also keeps the text
// for the switch. Such a bundle needs no stage, because an entry that is added
// depends on nothing that is there. It is the usual large bundle: a hundred thousand entries
// cost some 270 bytes each here, and the commit only sends them.

// messageList is messages one behind the other.
type messageList struct {
	pieces [][]byte
	size   int // of all messages
}

// Messages share objects of as many bytes as there were before, within these bounds.
const (
	leastMessages = 1 << 10
	mostMessages  = 64 << 10
)

// add copies a message, and returns the copy.
func (l *messageList) add(message []byte) []byte {
	last := len(l.pieces) - 1
	if last < 0 || cap(l.pieces[last])-len(l.pieces[last]) < len(message) {
		l.pieces = append(l.pieces, make([]byte, 0, max(min(max(leastMessages, l.size), mostMessages), len(message))))
		last++
	}
	l.size += len(message)
	begin := len(l.pieces[last])
	l.pieces[last] = append(l.pieces[last], message...)
	return l.pieces[last][begin:]
}

// all gives the messages in the order in which they came.
func (l *messageList) all() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, rest := range l.pieces {
			for len(rest) > 0 {
				n := int(binary.BigEndian.Uint16(rest[2:]))
				if !yield(rest[:n:n]) {
					return
				}
				rest = rest[n:]
			}
		}
	}
}

// addedEntries is the text of a bundle that only adds entries.
type addedEntries struct {
	text door.BundleText
	// referring are the messages of entries that name groups or meters, which have to be there
	// at the commit.
	referring [][]byte
	// others says that some message does more than add an entry. Then text is empty.
	others bool

	// last is the last entry's. The text of a second one would join both.
	last flow.Identity
}

// add adds what a message asks for. f may be written afterwards.
func (a *addedEntries) add(f *openflow.FlowMod, message []byte) {
	if a.others {
		return
	}
	e := &f.Entry
	id := e.Identity()
	if a.text.Size() > 0 && a.last == id || f.Command != openflow.FlowAdd || f.CheckOverlap || f.ResetCounts || e.Table > lastTable {
		a.giveUp()
		return
	}
	if anyAction(e.Actions, refers) {
		a.referring = append(a.referring, message)
	}
	a.text.Add(e)
	a.last = id
}

// giveUp notes that the bundle needs a stage.
func (a *addedEntries) giveUp() { *a = addedEntries{others: true} }

// refers reports whether an action is one that stage.references checks.
func refers(a flow.Action) bool {
	switch a := a.(type) {
	case flow.GroupAction, flow.MeterAction:
		return true
	case flow.Controller:
		return a.MeterID != 0
	case *flow.CT:
		return a.ALG != ""
	}
	return false
}
