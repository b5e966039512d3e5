package ofserver

import "github.com/antrail/antrail/vswitchd/openflow"

// Flow mods that a controller sends in a row are one change of the switch.

// maxTogether is how many flow mods are one change of the switch at most.
const maxTogether = 4096

// takeFlowMod keeps a flow mod until no more of them have come: those that a controller sends
// in a row are one change.
func (c *connection) takeFlowMod(b []byte, f *openflow.FlowMod) error {
	c.pending = append(c.pending, pendingFlowMod{f, b})
	if c.from.Buffered() > 0 && len(c.pending) < maxTogether {
		return nil
	}
	return c.flush()
}

// flush applies the flow mods that wait. Each that is wrong is refused by itself. If the switch
// does not take them together, it gets them one by one.
func (c *connection) flush() error {
	all := c.pending
	c.pending = nil
	if len(all) == 0 {
		return nil
	}
	wrong := make([]error, len(all))
	err := c.change(func(st *stage) error {
		for i, p := range all {
			st.begin(p.bytes)
			wrong[i] = st.flowMod(p.mod, c.tableID)
		}
		return nil
	})
	for i, p := range all {
		if wrong[i] == nil && err != nil {
			wrong[i] = c.change(func(st *stage) error {
				st.begin(p.bytes)
				return st.flowMod(p.mod, c.tableID)
			})
		}
		if err := c.refuse(p.bytes, wrong[i]); err != nil {
			return err
		}
	}
	return nil
}
