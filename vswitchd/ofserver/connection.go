package ofserver

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/printable"
	"github.com/antrail/antrail/vswitchd/openflow"
)

const (
	// writeTime is how long a peer may take to read a message.
	writeTime = 30 * time.Second
	// maxPending is how many packet-ins wait for a peer that does not read.
	maxPending = 64
	// maxNotices is how many notices of removed entries and ports wait for it.
	maxNotices = 4096
	// readRoom is the size of the buffer for requests, in bytes.
	readRoom = 256 << 10
)

// Config has the options of a Server.
type Config struct {
	// Switch is the switch that controllers drive. Only the Server may change its entries.
	Switch Switch
	// Bridge is the name of the switch, and DatapathID its datapath ID.
	Bridge     string
	DatapathID uint64
	// Release is the version of the program.
	Release string
	// Versions are those that controllers may use; all if it is empty.
	Versions []openflow.Version
	// Log gets one line for each refused request; nil for none.
	Log *slog.Logger
}

// Server serves one switch. Any goroutine may call its methods.
type Server struct {
	Config
	sw    drivenSwitch
	begun time.Time
	// watching guards known, the ports that controllers know.
	watching sync.Mutex
	known    map[uint32]openflow.Port
	// changes is held while a request changes the switch. It guards settings and watch.
	changes sync.Mutex
	// settings are the settings of ports that controllers have made.
	settings map[uint32]telemetry.PortConfig
	// watch has the entries with which flow monitors compare.
	watch flowWatch
	// tlvs is the TLV table, sorted by index. It is never nil.
	tlvs atomic.Pointer[[]flow.TunnelOption]

	mu          sync.Mutex
	connections map[*connection]bool
	generation  uint64 // the newest generation_id of a role request
	counted     bool   // generation is set
}

// pendingFlowMod is a flow mod that has been read, and its message.
type pendingFlowMod struct {
	mod   *openflow.FlowMod
	bytes []byte
}

// bundles are the bundles of a connection that wait for their commit.
type bundles struct {
	open  map[uint32]*bundle
	bytes int // of all bundles: messages and texts
}

// bundle has the messages of a bundle, in the order in which they came.
type bundle struct {
	flags    uint16
	closed   bool
	bytes    int
	messages messageList
	added    addedEntries
}

// connection is one controller.
type connection struct {
	s       *Server
	peer    net.Conn
	from    *bufio.Reader
	version openflow.Version
	writing sync.Mutex // held while a message is written

	packetIns chan *openflow.PacketIn
	notices   chan openflow.Body // about removed entries and ports
	ended     chan struct{}      // closed when the connection has ended

	// mu guards these, which the controller sets.
	mu           sync.Mutex
	format       openflow.PacketInFormat
	missSendLen  uint16
	controllerID uint16
	role         openflow.ControllerRole
	agreed       bool                 // the version is negotiated
	async        openflow.AsyncConfig // the asynchronous messages that it gets
	nxm          bool                 // it uses the flow format of Nicira, in OpenFlow 1.0

	// Only the connection's own goroutine uses these. spare is memory for the next message, and mod
	// is memory for the flow mod of a bundle.
	spare    []byte
	mod      openflow.FlowMod
	monitors flowMonitors
	tableID  bool // flow mods of OpenFlow 1.0 have a table
	bundles  bundles
	pending  []pendingFlowMod
}

func newConnection(s *Server, peer net.Conn, missSendLen uint16) *connection {
	return &connection{
		s: s, peer: peer, from: bufio.NewReaderSize(peer, readRoom), role: openflow.RoleEqual, missSendLen: missSendLen,
		packetIns: make(chan *openflow.PacketIn, maxPending), ended: make(chan struct{}),
		notices: make(chan openflow.Body, maxNotices),
		bundles: bundles{open: map[uint32]*bundle{}}, monitors: flowMonitors{updates: newUpdateQueue()},
	}
}

// refuse sends err to the peer if it is an *openflow.Error. It returns any other error, which ends
// the connection. If err is nil, it does nothing.
func (c *connection) refuse(b []byte, err error) error {
	if err == nil {
		return nil
	}
	wrong, ok := errors.AsType[*openflow.Error](err)
	if !ok {
		return err
	}
	c.s.Log.Info("a request is refused", "bridge", c.s.Bridge, "xid", openflow.XID(b), "why", printable.Text(wrong.Error()))
	return c.send(openflow.Message{Version: c.version, XID: openflow.XID(b), Body: &openflow.ErrorReply{Kind: wrong.Kind, Data: b}})
}

// send writes a message.
func (c *connection) send(m openflow.Message) error {
	b, err := openflow.Encode(m)
	if err != nil {
		return err
	}
	return c.write(b)
}

// reply answers the request of a transaction.
func (c *connection) reply(xid uint32, body openflow.Body) error {
	return c.send(openflow.Message{Version: c.version, XID: xid, Body: body})
}

// write writes bytes. It closes the connection of a peer that does not read them within writeTime.
func (c *connection) write(b []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.peer.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := c.peer.Write(b)
	if err != nil {
		c.peer.Close()
		return fmt.Errorf("the controller does not read: %w", err)
	}
	return nil
}

// applyChange applies the changes that f puts on a stage. The error may be that of a slave.
func (c *connection) applyChange(f func(*stage) error) error {
	if err := c.checkNotSlave(); err != nil {
		return err
	}
	c.s.changes.Lock()
	defer c.s.changes.Unlock()
	st := newStage(c.s.sw)
	st.watched = len(c.s.watch.monitors) > 0
	if err := f(st); err != nil {
		return err
	}
	if err := st.apply(); err != nil {
		return err
	}
	for _, gone := range st.removed() {
		c.s.notifyRemoved(gone)
	}
	c.s.watch.report(c, st.monitored)
	return nil
}

// checkNotSlave returns an error if the controller is a slave.
func (c *connection) checkNotSlave() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.role == openflow.RoleSlave {
		return openflow.Fail(openflow.IsSlave, "a slave may not change the switch")
	}
	return nil
}
