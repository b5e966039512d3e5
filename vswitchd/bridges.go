package vswitchd

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/bridge"
	"github.com/antrail/antrail/vswitchd/ofserver"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// bridges is the switch as the database's rows configure it (bridge.Switch). A switch has one
// pipeline, so it is one bridge. Another one is refused: a controller may use all 254 tables of the
// pipeline, and none is left for a second bridge. So patch ports are refused, too (docs/decisions/075-one-bridge.md).
type bridges struct {
	client  *door.Client
	changes *changes // of client, for whatever changes entries
	runDir  string   // of the bridge's socket
	release string
	log     *slog.Logger
	ctx     context.Context // ends with the process
	server  atomic.Pointer[ofserver.Server]
	served  sync.WaitGroup

	mu    sync.Mutex
	now   *bridge.Bridge            // nil without one
	stop  context.CancelFunc        // ends the connections of now
	ways  map[string]*controllerWay // of now, by target
	ports map[string]bridge.Port    // of now, by name

	receivers receivers
}

// failSecure is the fail mode of a bridge that is left without entries. Any other bridge begins
// with an entry that makes it a learning switch, as with Open vSwitch.
const failSecure = "secure"

// Facts implements bridge.Switch. The version is that of Open vSwitch whose tools the process
// is compared with.
func (b *bridges) Facts() bridge.Facts {
	return bridge.Facts{
		Version: "3.1.0", DatapathTypes: []string{"netdev", "system"},
		InterfaceTypes: append([]string{"internal", "system", "tap"}, tunnelTypes...), DatapathVersion: b.release,
	}
}

// AddBridge implements bridge.Switch.
func (b *bridges) AddBridge(br bridge.Bridge) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now != nil && b.now.Name != br.Name {
		return fmt.Errorf("a switch of antrail is one bridge, and %s is there", b.now.Name)
	}
	return b.serveBridge(br)
}

// ChangeBridge implements bridge.Switch. Controllers stay connected if packets are to be held
// or no longer held, and nothing else changes.
func (b *bridges) ChangeBridge(br bridge.Bridge) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil || b.now.Name != br.Name {
		return fmt.Errorf("there is no bridge %s", br.Name)
	}
	if s, same := b.server.Load(), *b.now; s != nil {
		if same.FlowRestoreWait = br.FlowRestoreWait; reflect.DeepEqual(same, br) {
			b.now = &br
			return s.Hold(br.FlowRestoreWait)
		}
	}
	return b.serveBridge(br)
}

// serveBridge serves OpenFlow for a bridge, with its settings of now.
func (b *bridges) serveBridge(br bridge.Bridge) error {
	versions, err := versionsOf(br.Protocols)
	if err != nil {
		return err
	}
	if err := b.begin(&br); err != nil {
		return err
	}
	s, err := ofserver.New(ofserver.Config{
		Switch: b.changes, Bridge: br.Name, DatapathID: br.DatapathID, Release: b.release, Versions: versions, Log: b.log,
	})
	if err != nil {
		return fmt.Errorf("the switch at %s: %w", b.client.Socket(), err)
	}
	if err := s.Hold(br.FlowRestoreWait); err != nil {
		return err
	}
	b.end()
	if err := b.connect(s, &br); err != nil {
		b.end()
		return err
	}
	b.now = &br
	b.server.Store(s)
	return nil
}

// begin gives a switch without a pipeline that of a new bridge.
func (b *bridges) begin(br *bridge.Bridge) error {
	if b.client.Names() != nil || br.FailMode == failSecure {
		return nil
	}
	normal := &flow.Entry{Actions: []flow.Action{flow.Output{Port: flow.PortNormal}}}
	return b.changes.Apply(&flow.Bundle{Names: flow.NewNames(), Add: []*flow.Entry{normal}})
}

// end ends the connections of the bridge.
func (b *bridges) end() {
	if b.stop != nil {
		b.stop()
		b.served.Wait()
		b.stop = nil
	}
	b.server.Store(nil)
}

// RemoveBridge implements bridge.Switch. The switch is left without entries.
func (b *bridges) RemoveBridge(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil || b.now.Name != name {
		return nil
	}
	b.end()
	var errs []error
	for port := range b.ports {
		errs = append(errs, b.removePort(port))
	}
	b.now = nil
	errs = append(errs, b.changes.Apply(&flow.Bundle{Replace: true, Names: flow.NewNames()}))
	return errors.Join(errs...)
}

// wait returns when no controller is connected. ctx must have ended.
func (b *bridges) wait() { b.served.Wait() }

// versionsOf are the versions that a bridge's protocols name; all if there is none.
func versionsOf(protocols []string) (all []openflow.Version, err error) {
	for _, name := range protocols {
		i := slices.IndexFunc(openflow.Versions, func(v openflow.Version) bool { return v.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("protocols: %s is not supported", name)
		}
		all = append(all, openflow.Versions[i])
	}
	return all, nil
}

// datapathID is the number of a bridge that has none: a MAC address that nobody has bought.
func datapathID(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	const local, address = 0x020000000000, 0xffffffffffff
	return h.Sum64()&address | local
}
