package vswitchd

import (
	"github.com/antrail/antrail/vswitchd/appctl"
	"github.com/antrail/antrail/vswitchd/unixctl"
)

// commands are the commands of ovs-appctl that read or empty the switch.
func (b *bridges) commands() []unixctl.Command {
	return (&appctl.Switch{Switch: b.client, Bridge: b.name}).Commands()
}

// name is the name of the bridge; "" if there is none.
func (b *bridges) name() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current == nil {
		return ""
	}
	return b.current.Name
}
