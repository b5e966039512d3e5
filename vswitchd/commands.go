package vswitchd

import (
	"github.com/antrail/antrail/vswitchd/appctl"
	"github.com/antrail/antrail/vswitchd/unixctl"
)

// commands are those of ovs-appctl that ask for the switch.
func (b *bridges) commands() []unixctl.Command {
	return (&appctl.Switch{Switch: b.client, Bridge: b.name}).Commands()
}

// name is the bridge's; "" without one.
func (b *bridges) name() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil {
		return ""
	}
	return b.now.Name
}
