package ofserver

import "github.com/antrail/antrail/vswitchd/openflow"

// Flow mods that a controller sends in a row are one change of the switch.

// maxBatch is the largest number of flow mods in one change.
const maxBatch = 4096

// queueFlowMod keeps a flow mod until the buffer has no further message.
func (c *connection) queueFlowMod(b []byte, f *openflow.FlowMod) error {
	c.pending = append(c.pending, pendingFlowMod{f, b})
	if c.from.Buffered() > 0 && len(c.pending) < maxBatch {
		return nil
	}
	return c.applyPending()
}

// applyPending applies the queued flow mods. A wrong one is refused by itself. If the switch refuses
// the change, it gets the flow mods one by one.
func (c *connection) applyPending() error {
	all := c.pending
	c.pending = nil
	if len(all) == 0 {
		return nil
	}
	wrong := make([]error, len(all))
	err := c.applyChange(func(st *stage) error {
		for i, p := range all {
			st.beginMessage(p.bytes)
			wrong[i] = st.flowMod(p.mod, c.tableID)
		}
		return nil
	})
	for i, p := range all {
		if wrong[i] == nil && err != nil {
			wrong[i] = c.applyChange(func(st *stage) error {
				st.beginMessage(p.bytes)
				return st.flowMod(p.mod, c.tableID)
			})
		}
		if err := c.refuse(p.bytes, wrong[i]); err != nil {
			return err
		}
	}
	return nil
}
