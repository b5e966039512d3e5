package ofserver

import (
	"bytes"
	"fmt"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// PacketIn sends a packet to the controllers that have the controller id of its action and want
// packet-ins. It never waits: a controller that does not read loses the packet.
func (s *Server) PacketIn(pi *telemetry.PacketIn) {
	a := controllerAction(pi)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		if p := c.packetInFor(pi, &a); p != nil {
			select {
			case c.packetIns <- p:
			default:
			}
		}
	}
}

// FlowRemoved notifies controllers of an entry whose timeout has passed.
func (s *Server) FlowRemoved(e *telemetry.FlowRemoved) {
	m := &openflow.FlowRemoved{FlowStats: flowStats(&e.Flow), Reason: openflow.RemovedIdle}
	if e.Hard {
		m.Reason = openflow.RemovedHard
	}
	s.notifyRemoved(m)
}

// notifyRemoved notifies the controllers that want it of a removed entry. A controller that does
// not read loses the notice.
func (s *Server) notifyRemoved(m *openflow.FlowRemoved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		if own := c.removedFor(m); own != nil {
			select {
			case c.notices <- own:
			default:
				s.Log.Warn("a controller does not read, and loses the notice of a removed entry", "entry", m.Entry.String())
			}
		}
	}
}

// removedFor is the notice of a removed entry for the connection; nil if it does not want one.
func (c *connection) removedFor(m *openflow.FlowRemoved) *openflow.FlowRemoved {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Reason > openflow.LastRemoved(c.version) || !c.wants(openflow.AsyncFlowRemoved, uint8(m.Reason)) {
		return nil
	}
	own := *m
	own.NX = c.nxm && c.version == openflow.V10
	return &own
}

// wants reports whether the connection gets an asynchronous message. A controller that connected to
// a listener gets none before it has set miss_send_len. c.mu is held.
func (c *connection) wants(kind openflow.AsyncKind, reason uint8) bool {
	return c.agreed && c.missSendLen != 0 && c.async.Wants(kind, c.role, reason)
}

// controllerAction is the action of an entry that sent a packet-in.
func controllerAction(pi *telemetry.PacketIn) (found flow.Controller) {
	found.MaxLen = 65535
	if pi.Entry == nil {
		return found
	}
	anyAction(pi.Entry.Actions, func(a flow.Action) bool {
		c, ok := a.(flow.Controller)
		if !ok || c.Reason != pi.Reason || !bytes.Equal(c.UserData, pi.UserData) {
			return false
		}
		found = c
		return true
	})
	return found
}

// packetInFor is a packet-in for the connection; nil if it does not want it.
func (c *connection) packetInFor(pi *telemetry.PacketIn, a *flow.Controller) *openflow.PacketIn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.ID != c.controllerID || !c.wants(openflow.AsyncPacketIn, openflow.PacketInReason(pi.Reason, c.version)) {
		return nil
	}
	p := &openflow.PacketIn{
		Format: c.format, Table: pi.Table, Reason: pi.Reason, UserData: pi.UserData, Length: pi.Length,
		Frame: pi.Frame[:min(len(pi.Frame), int(a.MaxLen))], Metadata: metadataOf(&pi.Key),
	}
	if pi.Entry != nil {
		p.Cookie = pi.Entry.Cookie
	}
	p.Metadata.AddExact(flow.InPort, flow.Value{Lo: uint64(pi.InPort)})
	for _, r := range pi.Rests {
		p.Rests = append(p.Rests, openflow.Rest{Table: r.Table, Cookie: r.Cookie, Actions: r.Actions})
	}
	return p
}

// metadataFields are the fields that a packet-in has in addition to the frame, if they are not 0.
var metadataFields = append(registers(), flow.Metadata, flow.TunID, flow.TunSrc, flow.TunDst, flow.PktMark,
	flow.CTState, flow.CTZone, flow.CTMark, flow.CTLabel)

// addOptions adds the options of a packet's tunnel, also those that are 0.
func addOptions(m *flow.Match, k *flow.Key) {
	has := flow.FieldByID(flow.TunPresent).Get(k)
	for i := range flow.FieldID(flow.TunMetadataFields) {
		if id := flow.TunMetadata0 + i; has.Lo>>i&1 != 0 {
			m.AddExact(id, flow.FieldByID(id).Get(k))
		}
	}
}

func registers() (all []flow.FieldID) {
	for i := range flow.FieldID(16) {
		all = append(all, flow.Reg0+i)
	}
	return all
}

func metadataOf(k *flow.Key) (m flow.Match) {
	for _, id := range metadataFields {
		if v := flow.FieldByID(id).Get(k); !v.IsZero() {
			m.AddExact(id, v)
		}
	}
	addOptions(&m, k)
	if state, _ := m.Get(flow.CTState); !state.IsZero() {
		addTuple(&m, k)
	}
	return m
}

// tupleFields are the original direction of a packet's connection, behind the field that they need
// in a match.
var tupleFields = []flow.FieldID{flow.EthType, flow.CTNwProto, flow.CTNwSrc, flow.CTNwDst, flow.CTIPv6Src, flow.CTIPv6Dst, flow.CTTpSrc, flow.CTTpDst}

func addTuple(m *flow.Match, k *flow.Key) {
	for _, id := range tupleFields {
		f := flow.FieldByID(id)
		if v := f.Get(k); !v.IsZero() && m.Implies(f.Need) {
			m.AddExact(id, v)
		}
	}
}

// runPacketIns writes packet-ins and notices until the connection has ended.
func (c *connection) runPacketIns() {
	for {
		select {
		case <-c.ended:
			return
		case p := <-c.packetIns:
			c.notify(p)
		case m := <-c.notices:
			c.notify(m)
		}
	}
}

// notify writes a message that does not answer a request.
func (c *connection) notify(m openflow.Body) {
	if err := c.reply(0, m); err != nil {
		c.s.Log.Info("a message does not reach a controller", "message", fmt.Sprintf("%T", m), "why", err)
	}
}

// setRole gives the connection a role, and answers.
func (c *connection) setRole(xid uint32, q *openflow.Role) error {
	answer, err := c.changeRole(q)
	if err != nil {
		return err
	}
	return c.reply(xid, answer)
}

// changeRole gives the connection a role. Another master becomes a slave.
func (c *connection) changeRole(q *openflow.Role) (*openflow.Role, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if q.Counted {
		if c.s.counted && int64(q.Generation-c.s.generation) < 0 {
			return nil, openflow.Fail(openflow.StaleRole, "generation %d is older than %d", q.Generation, c.s.generation)
		}
		c.s.generation, c.s.counted = q.Generation, true
	}
	if q.Role == openflow.RoleMaster {
		for other := range c.s.connections {
			other.locked(func() {
				if other.role == openflow.RoleMaster {
					other.role = openflow.RoleSlave
				}
			})
		}
	}
	answer := &openflow.Role{Generation: c.s.generation, NX: q.NX}
	c.locked(func() {
		if q.Role != openflow.RoleNoChange {
			c.role = q.Role
		}
		answer.Role = c.role
	})
	return answer, nil
}
