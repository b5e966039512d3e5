package ofserver

import (
	"encoding/binary"
	"iter"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// A bundle keeps its messages until the commit. If it only adds entries, it also keeps the text
// for the switch. Such a bundle needs no stage, because an added entry does not depend on existing
// ones. It is the usual large bundle: each of a hundred thousand entries costs some 270 bytes here,
// and the commit only sends the text.

// messageList has messages, one behind the other.
type messageList struct {
	pieces [][]byte
	size   int // of all messages
}

// A new piece has as many bytes as all pieces before, within these bounds.
const (
	leastMessages = 1 << 10
	mostMessages  = 64 << 10
)

// appendCopy adds a copy of a message, and returns the copy.
func (l *messageList) appendCopy(message []byte) []byte {
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
	// referring are the messages of entries that name groups or meters, which must exist at the
	// commit.
	referring [][]byte
	// needsStage is set if a message does more than add an entry. Then text is empty.
	needsStage bool

	// last is the identity of the last entry. The text of two entries with one identity would be
	// read as one entry in two parts.
	last flow.Identity
}

// addFlowMod adds the entry of a message. The caller may change f afterwards.
func (a *addedEntries) addFlowMod(f *openflow.FlowMod, message []byte) {
	if a.needsStage {
		return
	}
	e := &f.Entry
	id := e.Identity()
	if a.text.Size() > 0 && a.last == id || f.Command != openflow.FlowAdd || f.CheckOverlap || f.ResetCounts || e.Table > lastTable {
		a.requireStage()
		return
	}
	if anyAction(e.Actions, refers) {
		a.referring = append(a.referring, message)
	}
	a.text.Add(e)
	a.last = id
}

// requireStage records that the bundle needs a stage.
func (a *addedEntries) requireStage() { *a = addedEntries{needsStage: true} }

// refers reports whether stage.checkReferences checks an action.
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
