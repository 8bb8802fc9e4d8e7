//! The simulated backend: a step takes the time that a cost model says, and computes nothing.

use crate::{Backend, Batch, EngineError};
use cr_cost::CostModel;
use cr_trace::Time;
use std::sync::Arc;

/// Steps timed by a cost model.
#[derive(Clone, Debug)]
pub struct SimBackend {
    cost: Arc<CostModel>,
}

impl SimBackend {
    /// A backend timed by `cost`.
    pub fn new(cost: Arc<CostModel>) -> SimBackend {
        SimBackend { cost }
    }
}

impl Backend for SimBackend {
    fn step(&mut self, batch: &Batch<'_>) -> Result<Time, EngineError> {
        Ok(self.cost.step(&batch.work))
    }

    fn timed(&self) -> Option<Arc<CostModel>> {
        Some(Arc::clone(&self.cost))
    }
}
