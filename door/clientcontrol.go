package door

import (
	"context"
	"net/url"
)

// Control makes this client the controller until ctx ends. It calls begun when the client has
// become the controller, and then onEvent for each event. With takeOver it replaces a connected
// controller. The error is ctx's, an AwayError, or a TakenOverError.
func (c *Client) Control(ctx context.Context, name string, takeOver bool, begun func(), onEvent func(*Event)) error {
	query := url.Values{"name": {name}}
	if takeOver {
		query.Set("take-over", "1")
	}
	if c.InvalidTTL {
		query.Set("invalid-ttl", "1")
	}
	d, body, err := c.stream(ctx, "/v1/controller", query, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	for {
		var e Event
		if err := d.Decode(&e); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.unanswered(err)
		}
		switch {
		case e.Token != "":
			c.token.Store(&e.Token)
			begun()
		case e.TakenOverBy != "":
			return &TakenOverError{e.TakenOverBy}
		default:
			onEvent(&e)
		}
	}
}

// TakenOverError is returned after another controller has taken over.
type TakenOverError struct{ By string }

// Error implements error.
func (e *TakenOverError) Error() string {
	return "controller " + e.By + " has taken over the switch"
}
