package ofserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/antrail/antrail/vswitchd/openflow"
)

// helloTime is how long a peer may take to say its versions.
const helloTime = 30 * time.Second

// serve answers requests until the peer hangs up. The error is nil if it does so between two
// messages.
func (c *connection) serve() error {
	if err := c.negotiate(); err != nil {
		return err
	}
	for {
		b, err := openflow.Read(c.from, c.spare)
		c.spare = nil
		if err == io.EOF || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.handle(b); err != nil {
			return err
		}
	}
}

// negotiate exchanges hello messages, and sets the version.
func (c *connection) negotiate() error {
	newest := c.s.Versions[len(c.s.Versions)-1]
	if err := c.send(openflow.Message{Version: newest, XID: 1, Body: &openflow.Hello{Versions: c.s.Versions}}); err != nil {
		return err
	}
	c.peer.SetReadDeadline(time.Now().Add(helloTime))
	b, err := openflow.Read(c.from, nil)
	if err != nil {
		return err
	}
	c.peer.SetReadDeadline(time.Time{})
	m, err := openflow.Decode(b)
	h, ok := m.Body.(*openflow.Hello)
	if err == nil && !ok {
		err = fmt.Errorf("it is %T, want Hello", m.Body)
	}
	if err != nil {
		return fmt.Errorf("the first message: %w", err)
	}
	if c.version, ok = h.Negotiate(c.s.Versions); ok {
		c.locked(func() { c.async, c.agreed = openflow.DefaultAsync(c.version), true })
		return nil
	}
	why := fmt.Sprintf("the versions here are %v", c.s.Versions)
	refusal := &openflow.ErrorReply{Kind: openflow.HelloIncompatible, Data: []byte(why)}
	return errors.Join(errors.New("no common version"), c.send(openflow.Message{Version: newest, XID: m.XID, Body: refusal}))
}

// handle answers one request. The error ends the connection.
func (c *connection) handle(b []byte) error {
	if openflow.VersionOf(b) != c.version {
		return c.refuse(b, openflow.Fail(openflow.BadVersion, "the version of this connection is %s", c.version))
	}
	m, err := c.s.decode(b)
	f, isFlowMod := m.Body.(*openflow.FlowMod)
	if err == nil && isFlowMod {
		return c.queueFlowMod(b, f)
	}
	if err := c.applyPending(); err != nil {
		return err
	}
	if err == nil {
		err = c.answer(m, b)
	}
	if _, copied := m.Body.(*openflow.BundleAdd); copied {
		c.spare = b
	}
	return c.refuse(b, err)
}
