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
	// maxNotices is how many notices of removed entries wait for it.
	maxNotices = 4096
	// readRoom is the buffer for requests, and how many of them are one change at most.
	readRoom = 256 << 10
)

// Config is what a Server needs.
type Config struct {
	// Switch is what controllers drive. Nobody else may change its entries meanwhile.
	Switch Switch
	// Bridge is the name of the switch, and DatapathID its number in OpenFlow.
	Bridge     string
	DatapathID uint64
	// Release is the version of the program.
	Release string
	// Versions are those that controllers may use; all if there is none.
	Versions []openflow.Version
	// Log gets one line for each refused request; nil for none.
	Log *slog.Logger
}

// Server serves one switch. Any goroutine may call its methods.
type Server struct {
	Config
	sw    driven
	begun time.Time
	// watching is held while ports are compared with known, the ports that controllers know.
	watching sync.Mutex
	known    map[uint32]openflow.Port
	// settings are what controllers have set of ports. changes is held.
	settings map[uint32]telemetry.PortConfig
	// changes is held while a request changes the switch.
	changes sync.Mutex
	// watch is what flow monitors compare with. changes is held.
	watch flowWatch
	// tlvs is the TLV table, by its numbers. It is never nil.
	tlvs atomic.Pointer[[]flow.TunnelOption]

	mu          sync.Mutex
	connections map[*connection]bool
	generation  uint64 // the newest that a master or slave has named
	counted     bool   // one has
}

// pendingFlowMod is a flow mod that has been read, and its message.
type pendingFlowMod struct {
	mod   *openflow.FlowMod
	bytes []byte
}

// bundles are those of a connection that wait for their commit.
type bundles struct {
	open  map[uint32]*bundle
	bytes int // of all messages
}

// bundle is the messages of a bundle, as they came.
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
	notices   chan openflow.Body // of entries that are gone, and of ports
	ended     chan struct{}

	// The controller sets these. mu is held.
	mu           sync.Mutex
	format       openflow.PacketInFormat
	missSendLen  uint16
	controllerID uint16
	role         openflow.ControllerRole
	agreed       bool                 // on a version
	async        openflow.AsyncConfig // what it gets without having asked
	nxm          bool                 // it has asked for the flow format of Nicira, in OpenFlow 1.0

	// Only the connection's own goroutine uses these. spare is memory for the next message, and
	// mod for the flow mod of a bundle.
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

// refuse tells the peer why a request failed; nothing if err is nil. An error that is not
// OpenFlow's ends the connection.
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

// write writes bytes, and gives up a peer that does not read them.
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

// change applies what f puts on a stage, if the connection may change the switch.
func (c *connection) change(f func(*stage) error) error {
	if err := c.mayChange(); err != nil {
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
		c.s.tellRemoved(gone)
	}
	c.s.watch.tell(c, st.told)
	return nil
}

// mayChange is the error of a slave.
func (c *connection) mayChange() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.role == openflow.RoleSlave {
		return openflow.Fail(openflow.IsSlave, "a slave changes nothing")
	}
	return nil
}
