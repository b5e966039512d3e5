package ofserver

import (
	"encoding/binary"
	"errors"

	"github.com/antrail/antrail/vswitchd/openflow"
)

const (
	// maxBundles is the largest number of open bundles of a connection. A controller may have
	// hundreds of goroutines, each with its bundle.
	maxBundles = 1024
	// maxBundleBytes bounds the messages of all bundles of a connection, with the text of their
	// entries. A flow mod has some 270 bytes of both.
	maxBundleBytes = 192 << 20
)

// bundleControl opens, closes, commits or discards a bundle.
func (c *connection) bundleControl(xid uint32, q *openflow.BundleControl) error {
	b := c.bundles.open[q.ID]
	var err error
	switch q.Step {
	case openflow.BundleOpen:
		err = c.openBundle(q, b)
	case openflow.BundleClose:
		err = c.closeBundle(q, b)
	case openflow.BundleCommit:
		err = c.commitBundle(q, b)
	case openflow.BundleDiscard:
		if b == nil {
			return noBundle(q.ID)
		}
		c.dropBundle(q.ID)
	}
	if err != nil {
		return err
	}
	return c.reply(xid, q)
}

func noBundle(id uint32) error {
	return openflow.Fail(openflow.BundleBadID, "there is no bundle %d", id)
}

func (c *connection) openBundle(q *openflow.BundleControl, b *bundle) error {
	if b != nil {
		c.dropBundle(q.ID)
		return openflow.Fail(openflow.BundleBadID, "bundle %d is open already", q.ID) // as Open vSwitch says
	}
	if len(c.bundles.open) >= maxBundles {
		return openflow.Fail(openflow.OutOfBundles, "%d bundles are open", maxBundles)
	}
	c.bundles.open[q.ID] = &bundle{flags: q.Flags}
	return nil
}

func (c *connection) closeBundle(q *openflow.BundleControl, b *bundle) error {
	switch {
	case b == nil:
		return noBundle(q.ID)
	case b.closed:
		c.dropBundle(q.ID)
		return openflow.Fail(openflow.BundleClosed, "bundle %d is closed already", q.ID)
	case b.flags != q.Flags:
		c.dropBundle(q.ID)
		return openflow.Fail(openflow.BundleBadFlags, "bundle %d was opened with flags %#x", q.ID, b.flags)
	}
	b.closed = true
	return nil
}

// dropBundle forgets a bundle.
func (c *connection) dropBundle(id uint32) {
	if b := c.bundles.open[id]; b != nil {
		c.bundles.bytes -= b.bytes
		delete(c.bundles.open, id)
	}
}

// bundleAdd keeps a message until its bundle's commit. Like Open vSwitch, it opens a bundle that
// does not exist yet. If the message is wrong by itself, the bundles stay unchanged.
func (c *connection) bundleAdd(xid uint32, q *openflow.BundleAdd) error {
	isFlowMod, err := c.checkBundled(xid, q.Message)
	if err != nil {
		return err
	}
	b := c.bundles.open[q.ID]
	if b == nil {
		if err := c.openBundle(&openflow.BundleControl{ID: q.ID, Flags: q.Flags}, nil); err != nil {
			return err
		}
		b = c.bundles.open[q.ID]
	}
	fault := openflow.ErrorKind(0)
	switch {
	case b.closed:
		fault = openflow.BundleClosed
	case b.flags != q.Flags:
		fault = openflow.BundleBadFlags
	case c.bundles.bytes+len(q.Message) > maxBundleBytes:
		fault = openflow.BundleTooMany
	}
	if fault != 0 {
		c.dropBundle(q.ID)
		return openflow.Fail(fault, "bundle %d", q.ID)
	}
	kept := b.messages.appendCopy(q.Message)
	if isFlowMod {
		b.added.addFlowMod(&c.mod, kept)
	} else {
		b.added.requireStage()
	}
	c.bundles.bytes -= b.bytes
	b.bytes = b.messages.size + b.added.text.Size()
	c.bundles.bytes += b.bytes
	return nil
}

// checkBundled returns an error if a message is wrong by itself. It decodes a flow mod into c.mod.
func (c *connection) checkBundled(xid uint32, message []byte) (isFlowMod bool, err error) {
	if is := binary.BigEndian.Uint32(message[4:]); is != xid {
		return false, openflow.Fail(openflow.BundleBadXID, "the message in a bundle has transaction %#x, not %#x", is, xid)
	}
	if is, err := c.s.decodeFlowMod(message, &c.mod); is {
		return true, err
	}
	m, err := c.s.decode(message)
	if err == nil && !openflow.MayBundle(m.Body) {
		err = openflow.Fail(openflow.BundleMessageUnsupported, "a bundle takes flow mods and group mods only")
	}
	return false, err
}

// commitBundle applies a bundle, whole or not at all. The peer gets two errors: one for the first
// wrong message, with its transaction, and one for the commit.
func (c *connection) commitBundle(q *openflow.BundleControl, b *bundle) error {
	if b == nil {
		return noBundle(q.ID)
	}
	defer c.dropBundle(q.ID)
	if b.flags != q.Flags {
		return openflow.Fail(openflow.BundleBadFlags, "bundle %d was opened with flags %#x", q.ID, b.flags)
	}
	var wrong []byte
	err := c.applyChange(func(st *stage) (err error) {
		wrong, err = c.stageBundle(st, b)
		return err
	})
	if err == nil {
		return nil
	}
	if wrong != nil {
		if err := c.refuse(wrong, err); err != nil {
			return err
		}
		return openflow.Fail(openflow.BundleMessageFailed, "bundle %d", q.ID)
	}
	if e, ok := errors.AsType[*openflow.Error](err); ok && e.Kind == openflow.FlowModUnknown {
		return openflow.Fail(openflow.BundleMessageFailed, "bundle %d: %v", q.ID, err)
	}
	return err
}

// stageBundle puts a bundle on the stage. It returns the first message that is wrong.
func (c *connection) stageBundle(st *stage, b *bundle) (wrong []byte, err error) {
	if b.added.needsStage || st.watched { // monitors get each entry by itself
		for message := range b.messages.all() {
			if err := c.stageMessage(st, message); err != nil {
				return message, err
			}
		}
		return nil, nil
	}
	for _, message := range b.added.referring {
		_, err := c.s.decodeFlowMod(message, &c.mod)
		if err == nil {
			err = st.checkReferences(c.mod.Entry.Actions)
		}
		if err != nil {
			return message, err
		}
	}
	text := b.added.text // a copy, so that the stage does not keep the bundle's messages alive
	st.text = &text
	return nil, nil
}

// stageMessage puts a message of a bundle on the stage.
func (c *connection) stageMessage(st *stage, message []byte) error {
	m, err := c.s.decode(message)
	if err != nil {
		return err
	}
	st.xid = m.XID
	switch q := m.Body.(type) {
	case *openflow.FlowMod:
		return st.flowMod(q, c.tableID)
	case *openflow.GroupMod:
		return st.groupMod(q)
	}
	return openflow.Fail(openflow.BundleMessageUnsupported, "%T", m.Body)
}
