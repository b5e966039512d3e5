package ofserver

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// answer carries out a request and answers it. An error for the peer is an *openflow.Error.
func (c *connection) answer(m openflow.Message, b []byte) error {
	switch q := m.Body.(type) {
	case *openflow.EchoRequest:
		return c.reply(m.XID, &openflow.EchoReply{Data: q.Data})
	case *openflow.BarrierRequest:
		c.monitors.updates.drain()
		return c.reply(m.XID, &openflow.BarrierReply{})
	case *openflow.FeaturesRequest:
		return c.sendFeatures(m.XID)
	case *openflow.GetConfig:
		return c.reply(m.XID, c.config())
	case *openflow.SetConfig:
		return c.setConfig(q)
	case *openflow.Request:
		if q.Kind == openflow.StatsFlowMonitor {
			return c.answerMonitors(m.XID, q)
		}
		return c.answerMultipart(m.XID, q)
	case *openflow.FlowMonitorCancel:
		return c.cancelMonitor(q)
	case *openflow.QueueConfig:
		return c.sendQueues(m.XID, q)
	case *openflow.GroupMod:
		return c.applyChange(func(s *stage) error { return s.groupMod(q) })
	case *openflow.MeterMod:
		return c.applyChange(func(s *stage) error { return s.meterMod(q) })
	case *openflow.PortMod:
		return c.portMod(q)
	case *openflow.PacketOut:
		return c.packetOut(q)
	case *openflow.Resume:
		return c.resume(q)
	case *openflow.GetAsync:
		return c.reply(m.XID, c.asyncConfig())
	case *openflow.SetAsync:
		c.setAsync(q)
	case *openflow.BundleControl:
		return c.bundleControl(m.XID, q)
	case *openflow.BundleAdd:
		return c.bundleAdd(m.XID, q)
	case *openflow.Role:
		return c.setRole(m.XID, q)
	case *openflow.FlowModTableID:
		c.tableID = q.Set
	case *openflow.SetPacketInFormat:
		c.locked(func() { c.format = q.Format })
	case *openflow.SetControllerID:
		c.locked(func() { c.controllerID = q.ID })
	case *openflow.TLVTableRequest:
		return c.reply(m.XID, c.s.tlvTable())
	case *openflow.TLVTableMod:
		if err := c.checkNotSlave(); err != nil {
			return err
		}
		return c.s.changeTLVs(q)
	case *openflow.CTFlush:
		return c.flushConnections(q)
	case *openflow.SetFlowFormat:
		c.locked(func() { c.nxm = q.Format == openflow.FlowFormatNXM })
	case *openflow.EchoReply, *openflow.Hello:
	case *openflow.PeerError:
		c.s.Log.Info("a controller has sent an error", "type", q.Kind, "code", q.Code)
	default:
		return openflow.Fail(openflow.BadType, "%T is not supported", q)
	}
	return nil
}

// locked calls f with mu held.
func (c *connection) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// config is the answer to a controller that requests its configuration.
func (c *connection) config() *openflow.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := &openflow.Config{MissSendLen: c.missSendLen}
	if c.async.Wants(openflow.AsyncPacketIn, openflow.RoleEqual, openflow.PacketInReason("invalid_ttl", c.version)) {
		answer.Flags = openflow.InvalidTTLToController
	}
	return answer
}

func (c *connection) sendFeatures(xid uint32) error {
	f := &openflow.Features{DatapathID: c.s.DatapathID}
	if c.version == openflow.V10 {
		ports, err := c.s.ports()
		if err != nil {
			return err
		}
		f.Ports = ports
	}
	return c.reply(xid, f)
}

// setConfig sets miss_send_len, and whether the controller wants packets whose TTL ends. The only
// handling of fragments is "normal": ct() reassembles them.
func (c *connection) setConfig(q *openflow.SetConfig) error {
	if q.Flags&^openflow.InvalidTTLToController != 0 {
		return openflow.Fail(openflow.ConfigBadFlags, "flags %#x: only the normal handling of fragments is supported", q.Flags)
	}
	c.locked(func() {
		c.missSendLen = q.MissSendLen
		c.async.SetInvalidTTL(q.Flags != 0)
	})
	return nil
}

// sendQueues answers that a port has no queues.
func (c *connection) sendQueues(xid uint32, q *openflow.QueueConfig) error {
	if q.Port != flow.PortNone && q.Port != flow.PortAll {
		if err := c.s.sw.checkPort(q.Port, openflow.QueueBadPort); err != nil {
			return err
		}
	}
	return c.reply(xid, &openflow.QueueConfigReply{Port: q.Port})
}

// packetOut runs the actions of a packet-out.
func (c *connection) packetOut(q *openflow.PacketOut) error {
	if err := c.checkNotSlave(); err != nil {
		return err
	}
	port := q.InPort
	if port == flow.PortNone {
		port = flow.PortController
	}
	if port <= flow.MaxPort {
		if err := c.s.sw.checkPort(port, openflow.BadPort); err != nil {
			return err
		}
	}
	if q.Fields.IsAny() {
		if err := c.s.Switch.PacketOut(port, q.Actions, q.Frame); err != nil {
			return openflow.Fail(openflow.BadActionArgument, "packet-out: %v", err)
		}
		return nil
	}
	if err := c.s.Switch.Resume(&telemetry.Paused{InPort: port, Fields: q.Fields, Frame: q.Frame, Rests: []telemetry.Rest{{Actions: q.Actions}}}); err != nil {
		return openflow.Fail(openflow.BadActionArgument, "packet-out: %v", err)
	}
	return nil
}

// resume continues a paused packet that a controller returns.
func (c *connection) resume(q *openflow.Resume) error {
	if err := c.checkNotSlave(); err != nil {
		return err
	}
	p := &telemetry.Paused{InPort: q.InPort, Fields: q.Fields, Frame: q.Frame}
	for _, r := range q.Rests {
		p.Rests = append(p.Rests, telemetry.Rest{Table: r.Table, Cookie: r.Cookie, Actions: r.Actions})
	}
	if err := c.s.Switch.Resume(p); err != nil {
		return openflow.Fail(openflow.BadActionArgument, "%v", err)
	}
	return nil
}

// flushConnections removes tracked connections.
func (c *connection) flushConnections(q *openflow.CTFlush) error {
	if err := c.checkNotSlave(); err != nil {
		return err
	}
	f := conntrack.Filter{}
	if !q.All {
		f.Zone = &q.Zone
	}
	c.s.Switch.Connections().Flush(f)
	return nil
}
