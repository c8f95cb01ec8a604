package api

import "net/http"

func (a *API) createBatch(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	batch, err := a.cfg.Lookups.CreateBatch(c.Context(), c.caller.ClientID, body)
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, batch)
}

func (a *API) batch(c *call) error {
	q := c.query("limit", "cursor")
	limit, cursor := q.limit(), q.values.Get("cursor") // in its own form: next_cursor is the slice's
	if err := q.err(); err != nil {
		return err
	}
	batch, err := a.cfg.Lookups.Batch(c.Context(), c.caller.ClientID, c.PathValue("id"), limit, cursor)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, batch)
}

func (a *API) cancelBatch(c *call) error {
	if err := a.cfg.Lookups.CancelBatch(c.Context(), c.caller.ClientID, c.PathValue("id")); err != nil {
		return err
	}
	c.out.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) createSingle(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	single, err := a.cfg.Lookups.CreateSingle(c.Context(), c.caller.ClientID, body)
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, single)
}

func (a *API) single(c *call) error {
	single, err := a.cfg.Lookups.Single(c.Context(), c.caller.ClientID, c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, single)
}
